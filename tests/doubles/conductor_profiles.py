# SPDX-License-Identifier: Apache-2.0
"""Device profiles of the in-memory conductor."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from cyborg_lite.exceptions import (
    DeviceProfileExists,
    DeviceProfileInUse,
    DeviceProfileNotFound,
    ImpossibleDeviceProfile,
)
from cyborg_lite.model import fitting
from cyborg_lite.model.device_profiles import (
    DeviceProfile,
    Group,
    ProfileChange,
)
from cyborg_lite.model.explanations import (
    Explanation,
    GroupCandidates,
    ProviderCapacity,
)
from cyborg_lite.model.profile_errors import (
    DeviceProfileHasAlternatives,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.model.server_capacity import ProfileCapacity, count_capacity
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.interface import Conductor
from tests.doubles.generations import check_generation
from tests.doubles.paging import page


class ProfilesInMemory(Conductor):
    """Conductor without a transport."""

    def __init__(self) -> None:
        self.profiles: dict[str, DeviceProfile] = {}
        self.former_names: dict[str, str] = {}  # profile uuids by former name
        self.stock: list[ProviderCapacity] = []  # capacity that explanations use
        self.access: dict[str, tuple[str, ...]] = {}  # project ids by profile uuid
        self.choices: dict[str, tuple[int, ...]] = {}  # of alternatives, by uuid
        self.callers: list[RequestContext] = []
        self.refusal: Exception | None = None  # raised by every call
        self._ages = itertools.count()

    def now(self) -> datetime:
        """Return a time that is later at every call and the same in every run."""
        start = datetime(2026, 11, 21, 5, 53, 43, 501846, tzinfo=UTC)
        return start + timedelta(seconds=next(self._ages))

    def _record_call(self, context: RequestContext) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.callers.append(context)

    def _in_use(self, profile: DeviceProfile) -> bool:
        raise NotImplementedError

    def _visible(self, context: RequestContext) -> dict[str, DeviceProfile]:
        return {
            uuid: profile
            for uuid, profile in self.profiles.items()
            if profile.is_public
            or context.is_admin
            or context.project_id in self.access.get(uuid, ())
        }

    def _find_profile(self, context: RequestContext, uuid: str) -> DeviceProfile:
        try:
            return self._visible(context)[uuid]
        except KeyError:
            raise DeviceProfileNotFound(name=uuid) from None

    def profile_called(self, context: RequestContext, name: str) -> DeviceProfile:
        """Return the profile that has or had the name."""
        for profile in self._visible(context).values():
            if name == profile.name or self.former_names.get(name) == profile.uuid:
                return profile
        raise DeviceProfileNotFound(name=name)

    def _check_free(self, name: str, uuid: str) -> None:
        owners = {profile.name: profile.uuid for profile in self.profiles.values()}
        if {**self.former_names, **owners}.get(name, uuid) != uuid:
            raise DeviceProfileExists(name=name)

    def create_device_profiles(
        self,
        context: RequestContext,
        profiles: Sequence[DeviceProfile],
        *,
        possible: bool = False,
    ) -> tuple[DeviceProfile, ...]:
        self._record_call(context)
        for profile in profiles if possible else ():
            self._check_possible(profile)
        before = dict(self.profiles)
        try:
            return tuple(self._create(profile) for profile in profiles)
        except DeviceProfileExists:
            self.profiles = before
            raise

    def _create(self, profile: DeviceProfile) -> DeviceProfile:
        if profile.uuid in self.profiles:
            raise DeviceProfileExists(name=profile.uuid)
        self._check_free(profile.name, profile.uuid)
        stored = dataclasses.replace(profile, created_at=self.now())
        self.profiles[stored.uuid] = stored
        return stored

    def list_device_profiles(
        self, context: RequestContext, query: Query
    ) -> tuple[DeviceProfile, ...]:
        self._record_call(context)
        sorts = frozenset({'uuid', 'name', 'created_at'})
        names = set(query.filters.get('name', ()))
        owners = {self.former_names.get(name) for name in names}
        filters = {key: value for key, value in query.filters.items() if key != 'name'}
        profiles = [
            profile
            for profile in self._visible(context).values()
            if 'name' not in query.filters
            or profile.name in names
            or profile.uuid in owners
        ]
        return page(profiles, dataclasses.replace(query, filters=filters), sorts=sorts)

    def change_device_profile(
        self,
        context: RequestContext,
        uuid: str,
        change: ProfileChange,
        *,
        possible: bool = False,
        generation: int | None = None,
    ) -> DeviceProfile:
        self._record_call(context)
        before = self._find_profile(context, uuid)
        check_generation(before, generation)
        values = {field: getattr(change, field) for field in change.fields}
        if 'groups' in values and before.alternatives and 'alternatives' not in values:
            raise DeviceProfileHasAlternatives(name=before.name)
        after = dataclasses.replace(
            before,
            **values,
            updated_at=self.now(),
            generation=before.generation + 1,
        )
        if possible and 'groups' in values:
            self._check_possible(after)
        if after.name != before.name:
            self._check_free(after.name, uuid)
            self.former_names.pop(after.name, None)
            self.former_names[before.name] = uuid
        self.profiles[uuid] = after
        return after

    def delete_device_profiles(
        self,
        context: RequestContext,
        names: Sequence[str],
        generation: int | None = None,
    ) -> None:
        self._record_call(context)
        visible = self._visible(context)
        by_name = {profile.name: profile for profile in visible.values()} | visible
        for name in names:
            if name not in by_name:
                raise DeviceProfileNotFound(name=name)
            check_generation(by_name[name], generation)
            if self._in_use(by_name[name]):
                raise DeviceProfileInUse(name=name)
        for name in names:
            self.profiles.pop(by_name[name].uuid, None)

    # --- explanations ---

    def explain_device_profile(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> Explanation:
        self._record_call(context)
        groups = [
            self._list_candidates(profile)
            for profile in self._find_profile(context, uuid).groups
        ]
        hosts = {profile.hostname for profile in self.stock}
        if hostname is not None:
            hosts &= {hostname}
        return fitting.explain_fit(groups, self.stock, hosts)

    def choose_alternatives(
        self, context: RequestContext, uuid: str
    ) -> tuple[int, ...]:
        self._record_call(context)
        profile = self._find_profile(context, uuid)
        return self.choices.get(uuid, (0,) * len(profile.groups))

    def count_profile_capacity(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> ProfileCapacity:
        self._record_call(context)
        groups = [
            self._list_candidates(profile)
            for profile in self._find_profile(context, uuid).groups
        ]
        hosts = {profile.hostname for profile in self.stock}
        if hostname is not None:
            hosts &= {hostname}
        return count_capacity(groups, self.stock, hosts)

    def _check_possible(self, profile: DeviceProfile) -> None:
        groups = [self._list_candidates(profile) for profile in profile.groups]
        never = fitting.list_impossible_groups(groups, self.stock)
        if never:
            raise ImpossibleDeviceProfile(name=profile.name, reason=never[0].text)

    def _list_candidates(self, group: Mapping[str, str]) -> GroupCandidates:
        requirements = Group.parse(group).requirements
        offers = {
            profile.rp_uuid: {profile.resource_class: profile.free}
            for profile in self.stock
            if (profile.resource_class,) == requirements.resource_classes
            and profile.free >= requirements.amounts[0][1]
            and requirements.required <= profile.traits
        }
        return GroupCandidates(requirements, offers)

    # --- project access ---

    def list_profile_access(
        self, context: RequestContext, uuid: str
    ) -> tuple[str, ...]:
        self._record_call(context)
        return self.access.get(self._find_profile(context, uuid).uuid, ())

    def grant_profile_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> tuple[str, ...]:
        self._record_call(context)
        before = self.access.get(self._find_profile(context, uuid).uuid, ())
        self.access[uuid] = tuple(dict.fromkeys((*before, *projects)))
        return self.access[uuid]

    def revoke_profile_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        self._record_call(context)
        before = self.access.get(self._find_profile(context, uuid).uuid, ())
        self.access[uuid] = tuple(
            profile for profile in before if profile not in projects
        )
