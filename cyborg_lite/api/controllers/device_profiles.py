# SPDX-License-Identifier: Apache-2.0
"""Device profiles."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from oslo_log import log

from cyborg_lite.api.call import arguments, paging, profile_body
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since, until
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.call.validation import NO_CONTENT
from cyborg_lite.api.microversion import V2_2, V2_4, V2_5, V2_6, V2_7
from cyborg_lite.api.schemas import bodies
from cyborg_lite.api.views.capacity import ExplanationView, ProfileCapacityView
from cyborg_lite.api.views.device_profiles import (
    AccessList,
    ProfileList,
    ProfileView,
    WrappedProfile,
)
from cyborg_lite.api.views.encoding import encode
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.arqs.project_limits import count_resources
from cyborg_lite.model.profiles.alternatives import apply_choice
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Limits
from cyborg_lite.model.profiles.grammar import is_valid_name
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value
from cyborg_lite.rpc.interface import Conductor


def find_profile(conductor: Conductor, call: Call, identifier: str) -> DeviceProfile:
    """Return a profile by its uuid, or else by its current or a former name.

    :raises DeviceProfileNotFound: no profile that the caller may see matches
    """
    uuid = uuids.normalize_uuid(identifier)
    return find_first_profile(conductor, call, uuid=uuid, name=identifier)


def find_first_profile(
    conductor: Conductor, call: Call, **keys: str | None
) -> DeviceProfile:
    """Return the first profile that matches a key, in the order of the keys.

    A name may look like a UUID, so both are tried.

    :raises DeviceProfileNotFound: no profile that the caller may see matches
    """
    for key, value in keys.items():
        if value is not None and is_valid_name(value):
            query = Query(filters={key: (value,)})
            for profile in conductor.list_device_profiles(call.caller, query):
                return profile
    raise DeviceProfileNotFound(name=format_value(keys['name']))


def choose_alternatives(
    conductor: Conductor, call: Call, profile: DeviceProfile
) -> DeviceProfile:
    """Return a profile as a client without alternatives must see it.

    Such a client, mostly Nova, reads the groups that fit a host now. From 2.6 on the
    profile does not change. A profile without alternatives needs no call.
    """
    if call.microversion >= V2_6 or not profile.alternatives:
        return profile
    choice = conductor.choose_alternatives(call.caller, profile.uuid)
    return apply_choice(profile, choice)


_SWITCHES: Final = ('enabled', 'is_public')

LOG = log.getLogger(__name__)


class ProfileCollection(Resource):
    """``/v2/device_profiles``"""

    @expose()
    @requires('cyborg:device_profile:get_all')
    @accepts(
        arguments=(*arguments.PAGING, 'name'),
        newer={V2_4: _SWITCHES, V2_5: (arguments.PREFIX,)},
        selectable=(ProfileView,),
    )
    def get(self, call: Call) -> ProfileList:
        """List device profiles.

        A user sees public profiles and private profiles whose access list has the
        project of the user. An administrator sees all profiles.
        """
        filters: dict[str, tuple[str, ...]] = {
            **arguments.select_boolean_filters(call.arguments, _SWITCHES),
            **arguments.select_prefix_filter(call.arguments),
        }
        if 'name' in call.arguments:
            names = arguments.split_list(call.arguments['name'])
            # Malformed names are dropped: a database may compare them as equal to a
            # name. Without a valid name no profile matches.
            filters['name'] = tuple(filter(is_valid_name, names))
        query = paging.build_query(call, **filters)
        page = self.conductor.list_device_profiles(call.caller, query)
        records = page
        if 'name' in query.filters and call.microversion < V2_4:
            records = _hide_from_new_instances(call, records)
        if 'name' in query.filters:
            choose = choose_alternatives
            records = tuple(choose(self.conductor, call, item) for item in records)
            records = self._hide_beyond_limits(call, records)
        return ProfileList(records, paging.build_next_link(call, query, page))

    def _hide_beyond_limits(
        self, call: Call, profiles: tuple[DeviceProfile, ...]
    ) -> tuple[DeviceProfile, ...]:
        """Return the profiles of which the project may use one more instance.

        As in ``_hide_from_new_instances``. An instance whose ARQs are refused later
        would keep its allocation in Placement.
        """
        if not (profiles and call.is_from_nova_api and call.microversion < V2_4):
            return profiles
        uses = {use.resource: use for use in self.conductor.list_limits(call.caller)}
        allowed = []
        for profile in profiles:
            excess = [
                f'{name} (limit {uses[name].limit})'
                for name, number in count_resources(profile.groups).items()
                if name in uses and not uses[name].allows(number)
            ]
            if excess:
                _log_refusal(call, [profile.name], f'exceeds {", ".join(excess)}')
            else:
                allowed.append(profile)
        return tuple(allowed)

    @expose(status=201, errors=(409,))
    @requires('cyborg:device_profile:create')
    @accepts(body=bodies.CREATE_PROFILES)
    def post(self, call: Call) -> ProfileView | ProfileList:
        """Create device profiles.

        The body is a list, which has one element before 2.4. The service creates all of
        the profiles or none. For one profile the response is the profile, for several
        it is a list.
        """
        profiles = profile_body.parse_profiles(call, _find_limits(self, call))
        for profile in profiles:
            _warn_of_gpu_class(profile)
        created = self.conductor.create_device_profiles(
            call.caller, profiles, possible=self.context.refuse_impossible_profiles
        )
        if len(created) == 1:
            call.location = f'v2/device_profiles/{created[0].uuid}'
            return ProfileView(created[0])
        names = ','.join(profile.name for profile in created)
        call.location = f'v2/device_profiles?{urlencode({"name": names})}'
        return ProfileList(created)

    @expose(status=204, errors=(404, 409))
    @requires('cyborg:device_profile:delete')
    @until(V2_4)
    @accepts(arguments=('value', 'name'))
    def delete(self, call: Call) -> None:
        """Delete device profiles by uuid or name.

        Exactly one of the arguments is required. The service deletes all of the
        profiles or none. The response is 409 if an ARQ of a profile exists.
        """
        if len(call.arguments) != 1:
            raise InvalidInput(reason='Name the device profiles in the argument value.')
        (text,) = call.arguments.values()
        _delete_profiles(self, call, text)


class ProfileResource(Resource):
    """``/v2/device_profiles/{uuid or name}``"""

    @expose()
    @requires('cyborg:device_profile:get_one')
    @accepts(selectable=(ProfileView,))
    def get(self, call: Call) -> WrappedProfile:
        """Show a device profile.

        A former name of the profile is accepted too.
        """
        if uuids.normalize_uuid(self.identifier) is None:
            call.require_version(V2_2, 'A device profile name in the path')
        profile = find_profile(self.conductor, call, self.identifier)
        profile = choose_alternatives(self.conductor, call, profile)
        return WrappedProfile(device_profile=profile)

    @expose(errors=(409,))
    @requires('cyborg:device_profile:update')
    @since(V2_4, hidden=True)
    @accepts(body=bodies.PATCH_PROFILE, precondition=True)
    def patch(self, call: Call) -> WrappedProfile:
        """Change a device profile.

        The body is a list of changes, and since 2.5 a JSON Patch (RFC 6902) of the
        profile if its media type says so. ARQs that were created from the profile do
        not change.
        """
        if call.is_json_patch:
            profile = find_profile(self.conductor, call, self.identifier)
            document = encode(ProfileView(profile), call)
            if not call.resolve_patch(bodies.PROFILE_CHANGES, document):
                return WrappedProfile(device_profile=profile)
        change = profile_body.parse_profile_change(call, _find_limits(self, call))
        uuid = find_profile(self.conductor, call, self.identifier).uuid
        profile = self.conductor.change_device_profile(
            call.caller,
            uuid,
            change,
            possible=self.context.refuse_impossible_profiles,
            generation=call.generation,
        )
        _warn_of_gpu_class(profile)
        return WrappedProfile(device_profile=profile)

    @expose(status=204, errors=(409,))
    @requires('cyborg:device_profile:delete')
    @accepts(precondition=True)
    def delete(self, call: Call) -> None:
        """Delete a device profile.

        The response is 409 if an ARQ of the profile exists.
        """
        _delete_profiles(self, call, self.identifier)


def _find_limits(resource: Resource, call: Call) -> Limits:
    limits = resource.context.profile_limits
    return profile_body.add_declarations(call, limits, resource.conductor)


def _hide_from_new_instances(
    call: Call, profiles: tuple[DeviceProfile, ...]
) -> tuple[DeviceProfile, ...]:
    """Return the profiles without disabled ones, if the Compute API requests them.

    The Compute API refuses a new instance whose profile it does not find, before the
    instance is scheduled. For an unshelve or an evacuation another process of Nova
    reads the profile, so it finds disabled profiles. An error response would not help:
    Nova shows only its status code to the user.
    """
    disabled = [profile.name for profile in profiles if not profile.enabled]
    if not (disabled and call.is_from_nova_api):
        return profiles
    _log_refusal(call, disabled, 'is disabled')
    return tuple(profile for profile in profiles if profile.enabled)


def _log_refusal(call: Call, names: Sequence[str], reason: str) -> None:
    LOG.info(
        'New instance of project %s refused: device profile %s %s',
        call.caller.project_id,
        ', '.join(names),
        reason,
    )


def _delete_profiles(resource: Resource, call: Call, text: str) -> None:
    """Delete the profiles of a comma-separated list.

    :raises InvalidInput: the list is empty, which must not mean all profiles
    :raises DeviceProfileNotFound: a name is malformed
    """
    identifiers = arguments.split_list(text)
    if not identifiers:
        raise InvalidInput(reason='Name the device profiles to delete.')
    for identifier in identifiers:
        if not is_valid_name(identifier):
            raise DeviceProfileNotFound(name=format_value(identifier))
    names = [_normalize(resource, call, text) for text in identifiers]
    resource.conductor.delete_device_profiles(call.caller, names, call.generation)


def _normalize(resource: Resource, call: Call, identifier: str) -> str:
    """Return the identifier, with a UUID in lower case with hyphens."""
    uuid = uuids.normalize_uuid(identifier)
    if uuid is None or uuid == identifier:
        return identifier
    # A UUID in another notation may also be the name of a profile.
    search = find_first_profile
    return search(resource.conductor, call, name=identifier, uuid=uuid).uuid


def _warn_of_gpu_class(profile: DeviceProfile) -> None:
    if 'GPU' in profile.resource_classes():
        LOG.warning(
            'Device profile %s uses the resource class GPU. Placement does not have '
            'this class and Nova ignores it; use PGPU or VGPU.',
            profile.name,
        )


class ProfileAccess(Resource):
    """``/v2/device_profiles/{uuid or name}/access``"""

    @expose()
    @requires('cyborg:device_profile:access')
    @since(V2_4)
    @accepts(newer={V2_5: arguments.PAGES})
    def get(self, call: Call) -> AccessList:
        """List the projects that may use the device profile.

        The list applies while the device profile is not public.
        """
        return self._list(call, self._find_uuid(call))

    def _list(self, call: Call, uuid: str) -> AccessList:
        query = paging.build_query(call)
        projects = self.conductor.list_profile_access(call.caller, uuid, query)
        return AccessList(projects, paging.build_next_link(call, query, projects))

    @expose()
    @requires('cyborg:device_profile:access')
    @since(V2_4)
    @accepts(body=bodies.PROFILE_ACCESS, newer={V2_5: arguments.PAGES})
    def post(self, call: Call) -> AccessList:
        """Add projects to the access list of a device profile.

        Projects that are already in the list are accepted. The response is the list.
        """
        uuid = self._find_uuid(call)
        self.conductor.grant_profile_access(call.caller, uuid, call.body['projects'])
        return self._list(call, uuid)

    @expose(status=204)
    @requires('cyborg:device_profile:access')
    @since(V2_4)
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


class ProfileExplain(Resource):
    """``/v2/device_profiles/{uuid or name}/explain``"""

    @expose()
    @since(V2_4)
    @requires('cyborg:device_profile:explain')
    @accepts(arguments=('hostname',), body=NO_CONTENT)
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


class ProfileCapacityResource(Resource):
    """``/v2/device_profiles/{uuid or name}/capacity``"""

    @expose()
    @requires('cyborg:device_profile:capacity')
    @since(V2_7)
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
