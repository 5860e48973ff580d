# SPDX-License-Identifier: Apache-2.0
"""Explanation of the hosts on which a device profile fits."""

from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.profile_search import find_profile
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.schemas import device_profiles as schemas
from cyborg_lite.api.views.explanations import ExplanationView


class ProfileExplain(Resource):
    """``/v2/device_profiles/{uuid or name}/explain``"""

    @expose(ExplanationView)
    @since(V2_4, 'The explanation of a device profile')
    @requires('cyborg:device_profile:explain')
    @accepts(arguments=('hostname',), body=schemas.EXPLAIN)
    def post(self, call: Call) -> ExplanationView:
        """Explain on which hosts a device profile fits.

        For other hosts the response has the reasons: what each group of the profile
        lacks.
        """
        profile = find_profile(self.conductor, call, self.identifier)
        hostname = call.arguments.get('hostname')
        explanation = self.conductor.explain_device_profile(
            call.caller, profile.uuid, hostname
        )
        return ExplanationView(profile=profile, explanation=explanation)
