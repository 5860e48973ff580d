# SPDX-License-Identifier: Apache-2.0
"""Device profiles and the projects that may use them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.clients.placement import Consumer, Placement
from cyborg_lite.conductor.capacity.explanations import ExplanationService, find_profile
from cyborg_lite.db.arqs import alternatives
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.capacity.device_types import DeviceType
from cyborg_lite.model.capacity.explanations import Explanation
from cyborg_lite.model.capacity.server_capacity import ProfileCapacity
from cyborg_lite.model.jobs import BindPayload
from cyborg_lite.model.profiles.alternatives import Choice, apply_choice, list_choices
from cyborg_lite.model.profiles.device_profiles import (
    DeviceProfile,
    Group,
    GroupRequirements,
    ProfileChange,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeviceProfileService:
    """Manages device profiles.

    A profile that the caller may not see is treated as if it did not exist.
    """

    database: Database
    explanations: ExplanationService
    wake: Callable[[], None] = lambda: None  # called when a job may have been written

    @serves(Conductor.create_device_profiles)
    def create(
        self,
        context: RequestContext,
        new_profiles: Sequence[DeviceProfile],
        *,
        possible: bool = False,
    ) -> tuple[DeviceProfile, ...]:
        for profile in new_profiles if possible else ():
            self.explanations.check(profile)
        created = self.database.write(profiles.create_profiles, new_profiles)
        self.wake()
        return created

    @serves(Conductor.list_device_profiles)
    def list(self, context: RequestContext, query: Query) -> tuple[DeviceProfile, ...]:
        project = viewing_project(context)
        return self.database.read(profiles.list_profiles, query, project)

    @serves(Conductor.explain_device_profile)
    def explain(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> Explanation:
        """Explain on which hosts the profile fits; see ``ExplanationService``."""
        return self.explanations.explain(viewing_project(context), uuid, hostname)

    @serves(Conductor.count_profile_capacity)
    def count_capacity(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> ProfileCapacity:
        """Return how many further servers fit; see ``ExplanationService``."""
        project = viewing_project(context)
        return self.explanations.count_capacity(project, uuid, hostname)

    @serves(Conductor.list_device_types)
    def list_types(self, context: RequestContext) -> tuple[DeviceType, ...]:
        """Return the types of devices; see ``ExplanationService``."""
        return self.explanations.list_device_types(viewing_project(context))

    @serves(Conductor.change_device_profile)
    def change(
        self,
        context: RequestContext,
        uuid: str,
        change: ProfileChange,
        *,
        possible: bool = False,
        generation: int | None = None,
    ) -> DeviceProfile:
        project = viewing_project(context)
        if possible and 'groups' in change.fields:
            preview = profiles.preview_change
            self.explanations.check(self.database.read(preview, uuid, change, project))
        profile = self.database.write(
            profiles.update_profile, uuid, change, project, generation
        )
        self.wake()
        return profile

    @serves(Conductor.delete_device_profiles)
    def delete(
        self,
        context: RequestContext,
        names: Sequence[str],
        generation: int | None = None,
    ) -> None:
        project = viewing_project(context)
        self.database.write(profiles.delete_profiles, names, project, generation)
        self.wake()

    @serves(Conductor.list_profile_access)
    def list_access(
        self, context: RequestContext, uuid: str, query: Query
    ) -> tuple[str, ...]:
        project = viewing_project(context)
        return self.database.read(profiles.list_projects, uuid, query, project)

    @serves(Conductor.grant_profile_access)
    def grant_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        viewer = viewing_project(context)
        self.database.write(profiles.grant_access, uuid, projects, viewer)

    @serves(Conductor.revoke_profile_access)
    def revoke_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        viewer = viewing_project(context)
        self.database.write(profiles.revoke_access, uuid, projects, viewer)


def viewing_project(context: RequestContext) -> str | None:
    """Return the project whose profiles the caller sees.

    :returns: None if the caller is an admin and sees the profiles of all projects
    """
    if context.is_admin:
        return None
    return context.project_id or ''


# --- alternatives: the choice for Nova, and that of an instance ---
#
# Nova reads a profile when it schedules an instance, before it knows a host, and
# creates ARQs after it has chosen one. Neither request names the instance. Each choice
# that Nova reads is promised until Nova creates ARQs: another instance that is
# scheduled meanwhile gets the next alternative with free capacity. Between both
# requests another process may have chosen another alternative. So the choice is only a
# forecast; it is shared by all processes through the database. The bind is the first
# request that names the instance, and its allocation in Placement shows the alternative
# that Nova received. The bind corrects the ARQs before it claims handles.


@dataclass(frozen=True, slots=True)
class AlternativeService:
    """Chooses alternatives by the free capacity in Placement."""

    database: Database
    placement: Placement
    lifetime: int  # seconds for which a choice is valid for clients other than Nova

    @serves(Conductor.choose_alternatives)
    def choose(self, context: RequestContext, uuid: str) -> Choice:
        """Return the choice that is valid now for a profile.

        A service gets a choice that is promised to no other instance, if there is one.
        """
        if context.service_request:
            return self._promise(context, uuid)
        choice = self.database.read(alternatives.find_choice, uuid, self.lifetime)
        if choice is not None:
            return choice
        profile = find_profile(self.database, viewing_project(context), uuid)
        choice = self._select(profile)
        return self.database.write(
            alternatives.store_choice, uuid, choice, self.lifetime
        )

    def _promise(self, context: RequestContext, uuid: str) -> Choice:
        """Return a choice and promise it.

        If all capacity is promised, the choice is the first one that fits: an earlier
        reader may have given up.
        """
        profile = find_profile(self.database, viewing_project(context), uuid)
        fallback: Choice | None = None
        try:
            for choice in list_choices(profile):
                groups = apply_choice(profile, choice)
                if not self._fits(groups):
                    continue
                fallback = fallback or choice
                while (room := self._count_room(profile, choice)) > 0:
                    promise = uuid, choice, room
                    if self.database.write(alternatives.promise_choice, *promise):
                        return choice
        except (ServiceUnavailable, RemoteError) as error:
            _warn_first(profile, error)
        choice = fallback or (0,) * len(profile.groups)
        LOG.info('Device profile %s: no choice has room for one more', profile.name)
        self.database.write(alternatives.promise_choice, uuid, choice, None)
        return choice

    def _count_room(self, profile: DeviceProfile, choice: Choice) -> int:
        """Return the number of instances to which a choice can be promised at once.

        It sends no request if nothing is promised, and else one per distinct group.

        :returns: 0: all of it is promised
        """
        promises = self.database.read(alternatives.count_promises, profile.uuid)
        if not promises:
            return 1  # the choice fits
        own = promises.pop(choice, 0)
        promised = Counter[GroupRequirements]()  # groups of other choices
        for further, number in promises.items():
            for group in _parse_groups(apply_choice(profile, further)):
                promised[group] += number
        rooms = []
        for group, number in Counter(
            _parse_groups(apply_choice(profile, choice))
        ).items():
            amounts = dict(group.amounts)
            offers = self.placement.list_candidates(
                amounts, group.required, group.forbidden
            )
            units = sum(
                min(free.get(name, 0) // amount for name, amount in amounts.items())
                for free in offers.values()
            )
            rooms.append((units - promised[group]) // number)
        room = min(rooms, default=0)
        return room if room > own else 0

    def _select(self, profile: DeviceProfile) -> Choice:
        """Return the most preferred choice that fits a host now, or else the first.

        It sends one query to Placement for each choice up to the result.
        """
        try:
            for choice in list_choices(profile):
                if self._fits(apply_choice(profile, choice)):
                    LOG.info('Device profile %s: choice %s fits', profile.name, choice)
                    return choice
            LOG.info('Device profile %s: no alternative fits now', profile.name)
        except (ServiceUnavailable, RemoteError) as error:
            _warn_first(profile, error)
        return (0,) * len(profile.groups)

    def _fits(self, profile: DeviceProfile) -> bool:
        return self.placement.has_candidates(_parse_groups(profile))


def _parse_groups(profile: DeviceProfile) -> list[GroupRequirements]:
    return [Group.parse(group).requirements for group in profile.groups]


def _warn_first(profile: DeviceProfile, error: CyborgError) -> None:
    LOG.warning(
        'Device profile %s: the first alternative is used, because Placement did not '
        'answer: %s',
        profile.name,
        error.text,
    )


def correct_alternatives(
    database: Database, placement: Placement, payload: BindPayload, consumer: Consumer
) -> None:
    """Store which alternatives an instance got.

    It sends one request to Placement for each provider of the instance.

    :raises ServiceUnavailable: Placement does not answer
    """
    providers = consumer.providers.intersection(payload.provider_uuids)
    traits = {uuid: read_traits(placement, uuid) for uuid in sorted(providers)}
    numbers = database.write(
        alternatives.correct_alternatives,
        payload.arq_uuids,
        payload.generation,
        consumer.allocations,
        traits,
    )
    for group, number in numbers.items():
        if number is None:
            LOG.warning(
                'The allocation of instance %s matches no alternative of group %d',
                payload.instance_uuid,
                group,
            )


def read_traits(placement: Placement, uuid: str) -> frozenset[str]:
    """Return the traits of a provider in Placement."""
    try:
        return placement.get_traits(uuid).traits
    except PlacementConflict:
        return frozenset()  # it was deleted; the claim of a handle fails
