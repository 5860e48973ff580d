# SPDX-License-Identifier: Apache-2.0
"""Why a device profile fits or does not, host by host."""

from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.profile_search import found
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.schemas import device_profiles as schemas
from cyborg_lite.api.views.explanations import ExplanationView


class Explain(Resource):
    """``/v2/device_profiles/{uuid or name}/explain``"""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    @expose(ExplanationView)
    @since(V2_4, 'The explanation of a device profile')
    @requires('cyborg:device_profile:explain')
    @accepts(arguments=('hostname',), body=schemas.EXPLAIN)
    def post(self, call: Call) -> ExplanationView:
        profile = found(self.conductor, call, self._identifier)
        hostname = call.arguments.get('hostname')
        answer = self.conductor.explain_device_profile(
            call.caller, profile.uuid, hostname
        )
        return ExplanationView.showing(profile, answer)
