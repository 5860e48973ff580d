# SPDX-License-Identifier: Apache-2.0
"""Device profiles."""

from collections.abc import Mapping
from typing import ClassVar, Final

from oslo_log import log

from cyborg_lite.api import arguments, paging, profile_body, profile_search
from cyborg_lite.api.call import Call
from cyborg_lite.api.controllers.profile_access import Access
from cyborg_lite.api.controllers.profile_explain import Explain
from cyborg_lite.api.expose import accepts, expose, requires
from cyborg_lite.api.microversion import V2_2, V2_4, Microversion
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.schemas import device_profiles as schemas
from cyborg_lite.api.views import device_profiles as views
from cyborg_lite.api.views.device_profiles import (
    ProfileList,
    ProfileView,
    WrappedProfile,
)
from cyborg_lite.exceptions import DeviceProfileNotFound, InvalidInput
from cyborg_lite.model import uuids
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.profile_grammar import is_name
from cyborg_lite.model.text import shown

_SWITCHES: Final = ('enabled', 'is_public')

LOG = log.getLogger(__name__)


class DeviceProfiles(Resource):
    """``/v2/device_profiles``"""

    def below(self, segment: str) -> Resource:
        return Profile(self.backing, segment)

    @expose(ProfileList)
    @requires('cyborg:device_profile:get_all')
    @accepts(arguments=(*arguments.PAGING, 'name'), newer=_SWITCHES)
    def get(self, call: Call) -> ProfileList:
        switches = arguments.switches(call.arguments, _SWITCHES)
        query = arguments.query(call.arguments, name=_names(call), **switches)
        found = self.conductor.list_device_profiles(call.caller, query)
        return ProfileList.showing(found, call, paging.next_page(call, query, found))

    @expose(ProfileView, ProfileList, status=201, errors=(409,))
    @requires('cyborg:device_profile:create')
    @accepts(body=schemas.CREATE)
    def post(self, call: Call) -> ProfileView | ProfileList:
        wanted = profile_body.created(call, self.backing.profile_limits)
        for profile in wanted:
            _warn_of_unschedulable(profile)
        created = self.conductor.create_device_profiles(
            call.caller, wanted, possible=self.backing.refuse_impossible
        )
        return views.created(created, call)

    @expose(status=204, errors=(404, 409))
    @requires('cyborg:device_profile:delete')
    @accepts(arguments=('value', 'name'))
    def delete(self, call: Call) -> None:
        if len(call.arguments) != 1:
            raise InvalidInput(reason='Name the device profiles in value.')
        (listed,) = call.arguments.values()
        _delete(self, call, listed)


class Profile(Resource):
    """``/v2/device_profiles/{uuid or name}``"""

    since: ClassVar[Mapping[str, Microversion]] = {'PATCH': V2_4}

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    def below(self, segment: str) -> Resource:
        parts = {'access': Access, 'explain': Explain}
        if segment in parts:
            return parts[segment](self.backing, self._identifier)
        return super().below(segment)

    @expose(WrappedProfile)
    @requires('cyborg:device_profile:get_one')
    @accepts()
    def get(self, call: Call) -> WrappedProfile:
        if uuids.canonical(self._identifier) is None:
            call.require_version(V2_2, 'A device profile by its name')
        found = profile_search.found(self.conductor, call, self._identifier)
        return WrappedProfile.showing(found, call)

    @expose(WrappedProfile, errors=(409,))
    @requires('cyborg:device_profile:update')
    @accepts(body=schemas.PATCH)
    def patch(self, call: Call) -> WrappedProfile:
        wanted = profile_body.changed(call, self.backing.profile_limits)
        uuid = profile_search.found(self.conductor, call, self._identifier).uuid
        changed = self.conductor.change_device_profile(
            call.caller, uuid, wanted, possible=self.backing.refuse_impossible
        )
        _warn_of_unschedulable(changed)
        return WrappedProfile.showing(changed, call)

    @expose(status=204, errors=(409,))
    @requires('cyborg:device_profile:delete')
    @accepts()
    def delete(self, call: Call) -> None:
        _delete(self, call, self._identifier)


def _names(call: Call) -> tuple[str, ...] | None:
    """Those that are asked for; None: all. None of them may be left."""
    listed = call.arguments.get('name')
    if listed is None:
        return None
    # What is no name has no profile, whatever a database takes for equal to it.
    return tuple(filter(is_name, arguments.listed(listed)))


def _delete(resource: Resource, call: Call, listed: str) -> None:
    """:raises InvalidInput: nothing is named; that must never mean all"""
    identifiers = arguments.listed(listed)
    if not identifiers:
        raise InvalidInput(reason='Name the device profiles to delete.')
    for identifier in identifiers:
        if not is_name(identifier):
            raise DeviceProfileNotFound(name=shown(identifier))
    resource.conductor.delete_device_profiles(
        call.caller, [_spelling(resource, call, one) for one in identifiers]
    )


def _spelling(resource: Resource, call: Call, identifier: str) -> str:
    """The identifier as the conductor knows it: a UUID in its one spelling."""
    uuid = uuids.canonical(identifier)
    if uuid is None or uuid == identifier:
        return identifier
    # Another spelling of a UUID may well be the name of a profile.
    search = profile_search.first
    return search(resource.conductor, call, name=identifier, uuid=uuid).uuid


def _warn_of_unschedulable(profile: DeviceProfile) -> None:
    if 'GPU' in profile.resource_classes():
        LOG.warning(
            'Device profile %s asks for the resource class GPU, which Placement does '
            'not have: Nova drops it. Use PGPU or VGPU.',
            profile.name,
        )
