# SPDX-License-Identifier: Apache-2.0
"""The version documents."""

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import expose
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.views import versions


class RootDocument(Resource):
    """``/``"""

    @expose()
    def get(self, call: Call) -> versions.RootView:
        """Show the versions of the API.

        The response names the lowest and the highest microversion. No token is
        required.
        """
        version = versions.build_version(call, 'v2', 'v2').item
        return versions.RootView(
            # Clients identify the service by the name of the original project.
            name='OpenStack Cyborg API',
            description='Management of accelerators: GPUs, FPGAs and other devices.',
            versions=[version],
            default_version=version,
        )


class VersionDocument(Resource):
    """``/v2``"""

    @expose()
    def get(self, call: Call) -> versions.VersionView:
        """Show the range of microversions.

        The response names the lowest and the highest microversion. No token is
        required.
        """
        return versions.build_version(call, 'v2.0', 'v2/')
