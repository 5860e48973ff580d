# SPDX-License-Identifier: Apache-2.0
"""The access list of a device profile that is not public."""

from typing import Final

from cyborg_lite.api import arguments
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.profile_search import found
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.schemas import device_profiles as schemas
from cyborg_lite.api.views.device_profiles import AccessList
from cyborg_lite.exceptions import InvalidInput

_FEATURE: Final = 'The access list of a device profile'


class Access(Resource):
    """``/v2/device_profiles/{uuid or name}/access``"""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    @expose(AccessList)
    @requires('cyborg:device_profile:access')
    @since(V2_4, _FEATURE)
    @accepts()
    def get(self, call: Call) -> AccessList:
        uuid = self._profile(call)
        projects = self.conductor.list_profile_access(call.caller, uuid)
        return AccessList(projects=list(projects))

    @expose(AccessList)
    @requires('cyborg:device_profile:access')
    @since(V2_4, _FEATURE)
    @accepts(body=schemas.ACCESS)
    def post(self, call: Call) -> AccessList:
        uuid = self._profile(call)
        wanted = call.body['projects']
        projects = self.conductor.grant_profile_access(call.caller, uuid, wanted)
        return AccessList(projects=list(projects))

    @expose(status=204)
    @requires('cyborg:device_profile:access')
    @since(V2_4, _FEATURE)
    @accepts(arguments=('value',))
    def delete(self, call: Call) -> None:
        uuid = self._profile(call)
        revoked = arguments.listed(call.arguments.get('value', ''))
        if not revoked:
            raise InvalidInput(reason='Name the projects in value.')
        self.conductor.revoke_profile_access(call.caller, uuid, revoked)

    def _profile(self, call: Call) -> str:
        return found(self.conductor, call, self._identifier).uuid
