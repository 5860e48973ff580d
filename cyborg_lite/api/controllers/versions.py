# SPDX-License-Identifier: Apache-2.0
"""The version documents."""

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, VERSIONS, Microversion
from cyborg_lite.api.views import versions
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.text import format_value


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


class OpenApiDocument(Resource):
    """``/v2/openapi.json``"""

    @expose(errors=(400,))
    @accepts(arguments=('microversion',))
    def get(self, call: Call) -> bytes:
        """Show the API document of one microversion, or of all of them.

        The document follows OpenAPI 3.1. No token is required.
        """
        version = _parse_version(call.arguments.get('microversion', ''))
        return self.context.encode_document(version, call.links.base)


def _parse_version(text: str) -> Microversion | None:
    """Return the microversion; None: all of them.

    :raises InvalidInput: the microversion is not supported
    """
    if not text:
        return None
    for version in VERSIONS:
        if str(version) == text:
            return version
    raise InvalidInput(
        reason=f'microversion must be one of {MINIMUM} to {MAXIMUM}, '
        f'not {format_value(text)}.'
    )
