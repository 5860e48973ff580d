# SPDX-License-Identifier: Apache-2.0
"""The access list of a device profile that is not public."""

from typing import Final

from cyborg_lite.api import arguments
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.profile_search import find_profile
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.schemas import device_profiles as schemas
from cyborg_lite.api.views.device_profiles import AccessList
from cyborg_lite.exceptions import InvalidInput

_FEATURE: Final = 'The access list of a device profile'


class ProfileAccess(Resource):
    """``/v2/device_profiles/{uuid or name}/access``"""

    @expose(AccessList)
    @requires('cyborg:device_profile:access')
    @since(V2_4, _FEATURE)
    @accepts()
    def get(self, call: Call) -> AccessList:
        """List the projects that may use the device profile.

        The list applies while the device profile is not public.
        """
        uuid = self._find_uuid(call)
        projects = self.conductor.list_profile_access(call.caller, uuid)
        return AccessList(projects=projects)

    @expose(AccessList)
    @requires('cyborg:device_profile:access')
    @since(V2_4, _FEATURE)
    @accepts(body=schemas.ACCESS)
    def post(self, call: Call) -> AccessList:
        """Add projects to the access list of a device profile.

        Projects that are already in the list are accepted. The response is the whole
        list.
        """
        uuid = self._find_uuid(call)
        project_ids = call.body['projects']
        projects = self.conductor.grant_profile_access(call.caller, uuid, project_ids)
        return AccessList(projects=projects)

    @expose(status=204)
    @requires('cyborg:device_profile:access')
    @since(V2_4, _FEATURE)
    @accepts(arguments=('value',))
    def delete(self, call: Call) -> None:
        """Remove projects from the access list of a device profile.

        Projects that are not in the list are accepted. Existing ARQs do not change.
        """
        uuid = self._find_uuid(call)
        revoked = arguments.split_list(call.arguments.get('value', ''))
        if not revoked:
            raise InvalidInput(reason='Name the projects in the argument value.')
        self.conductor.revoke_profile_access(call.caller, uuid, revoked)

    def _find_uuid(self, call: Call) -> str:
        return find_profile(self.conductor, call, self.identifier).uuid
