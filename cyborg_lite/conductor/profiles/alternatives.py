# SPDX-License-Identifier: Apache-2.0
"""Alternatives of device profiles: the choice for Nova, and that of an instance.

Nova reads a profile when it schedules an instance, before it knows a host, and creates
ARQs after it has chosen one. Neither request names the instance. Between them another
process may have chosen another alternative. So the choice is only a forecast; it is
shared by all processes through the database. The bind is the first request that names
the instance, and its allocation in Placement shows the alternative that Nova
received. The bind corrects the ARQs before it claims handles.
"""

from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.clients.placement import Consumer, Placement
from cyborg_lite.conductor.profiles.device_profiles import viewing_project
from cyborg_lite.db.arqs import alternatives
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import choices, profiles
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.jobs import BindPayload
from cyborg_lite.model.profiles.alternatives import Choice, apply_choice, list_choices
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Group
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AlternativeService:
    """Chooses alternatives by the free capacity in Placement."""

    database: Database
    placement: Placement
    lifetime: int  # seconds for which a choice is valid

    @serves(Conductor.choose_alternatives)
    def choose(self, context: RequestContext, uuid: str) -> Choice:
        """Return the choice that is valid now for a profile."""
        choice = self.database.read(choices.find_choice, uuid, self.lifetime)
        if choice is not None:
            return choice
        viewer = viewing_project(context)
        query = Query(filters={'uuid': (uuid,)})
        rows = self.database.read(profiles.list_profiles, query, viewer)
        if not rows:
            raise DeviceProfileNotFound(name=uuid)
        choice = self._select(rows[0])
        return self.database.write(choices.store_choice, uuid, choice, self.lifetime)

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
            LOG.warning(
                'Device profile %s: the first alternative is used, because Placement '
                'did not answer: %s',
                profile.name,
                error.text,
            )
        return (0,) * len(profile.groups)

    def _fits(self, profile: DeviceProfile) -> bool:
        groups = [Group.parse(group).requirements for group in profile.groups]
        return self.placement.has_candidates(groups)


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
