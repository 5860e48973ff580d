# SPDX-License-Identifier: Apache-2.0
"""Number of further servers that fit with a device profile."""

from typing import ClassVar

from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_22
from cyborg_lite.api.profile_search import find_profile
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.views.server_capacity import ProfileCapacityView


class ProfileCapacityResource(Resource):
    """``/v2/device_profiles/{uuid or name}/capacity``"""

    path_since: ClassVar = V2_22

    @expose(ProfileCapacityView)
    @requires('cyborg:device_profile:capacity')
    @since(V2_22, 'The capacity of a device profile')
    @accepts(arguments=('hostname',))
    def get(self, call: Call) -> ProfileCapacityView:
        """Count the further servers that fit on each host.

        For each host and for all hosts the response also has the groups of the profile
        that run out of units first.
        """
        profile = find_profile(self.conductor, call, self.identifier)
        hostname = call.arguments.get('hostname')
        capacity = self.conductor.count_profile_capacity(
            call.caller, profile.uuid, hostname
        )
        return ProfileCapacityView(profile=profile, capacity=capacity)
