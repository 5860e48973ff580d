# SPDX-License-Identifier: Apache-2.0
"""Comparison of the allocations in Placement with the ARQs.

Nova may delete a server and its ARQs, and leave its allocation. Such a leak occupies
units that nobody uses.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from oslo_log import log

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.ownership import allocations
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.ownership.allocations import UnownedAllocation
from cyborg_lite.model.traits import OWNER_CYBORG

LOG = log.getLogger(__name__)

_SECOND_LOOK: Final = 10.0  # seconds; Nova ends an allocation soon after the ARQs
# Seconds. A deletion in Placement need not change the generation of the provider.
_MAX_AGE: Final = 86_400
_BATCH: Final = 100  # providers that one transaction stores


@dataclass(frozen=True, slots=True)
class Pace:
    """The number of requests of an audit per second."""

    rate: int  # for the allocations of providers, and for the trees of hosts
    wait: Callable[[float], object]  # waits the seconds; True: the process stops

    def pause(self, seconds: float | None = None) -> None:
        """Wait.

        :param seconds: None: until the next request may be sent
        :raises ServiceUnavailable: the process stops
        """
        if self.wait(1 / self.rate if seconds is None else seconds):
            raise ServiceUnavailable(what='This conductor')


@dataclass(frozen=True, slots=True)
class AllocationCheck:
    """Copies the allocations of own providers, and finds those without an ARQ."""

    database: Database
    placement: Placement
    nova: Nova
    pace: Pace

    def refresh(self) -> None:
        """Copy the allocations of the providers that may have changed.

        Sends one request for the generations of all providers, and one for each
        provider whose generation is new, whose copy is a day old, or that has an
        allocation without an ARQ.

        :raises CyborgError: the database or Placement does not answer
        """
        nodes = self.placement.list_providers(OWNER_CYBORG)
        generations = {node.uuid: node.generation for node in nodes}
        before = self.database.read(clock.read_time_before, _MAX_AGE)
        outdated = self.database.read(
            allocations.list_outdated_providers, generations, before
        )
        self._copy(outdated, generations)
        self.database.write(allocations.delete_unused_copies)

    def _copy(self, providers: Sequence[str], generations: Mapping[str, int]) -> None:
        for start in range(0, len(providers), _BATCH):
            allocated = {}
            for uuid in providers[start : start + _BATCH]:
                allocated[uuid] = self.placement.list_allocations(uuid)
                self.pace.pause()
            self.database.write(allocations.store_allocations, generations, allocated)

    def find_unowned(self) -> tuple[UnownedAllocation, ...]:
        """Return the allocations without an ARQ that two looks agree on.

        Between the looks, Nova may finish the creation or the deletion of a server.

        :raises CyborgError: the database or Placement does not answer, or Nova does not
            answer or hides the instances of other projects. What is known without Nova
            is stored nevertheless
        """
        self.refresh()
        failures: list[CyborgError] = []
        looks = [self._look(failures)]
        if any(item.unowned_since is None for item in looks[0].values()):
            self.pace.pause(_SECOND_LOOK)
            self._copy(sorted({item.rp_uuid for item in looks[0].values()}), {})
            looks.append(self._look(failures))
        confirmed = [
            replace(item, has_server=_agree(look[key].has_server for look in looks))
            for key, item in looks[-1].items()
            if all(key in look for look in looks)
        ]
        self.database.write(allocations.confirm_unowned, confirmed)
        if failures:
            raise failures[0]
        return self.database.read(allocations.list_leaked)

    def _look(
        self, failures: list[CyborgError]
    ) -> Mapping[tuple[str, str, str], UnownedAllocation]:
        """Return the allocations without an ARQ, with what Nova says of the server.

        Placement is read first and the ARQs last: Nova binds the ARQs before an
        instance is active, and deletes them before the allocation.
        """
        candidates = self.database.read(allocations.list_unowned)
        try:
            servers = self._ask_nova(candidates)
        except CyborgError as error:
            failures.append(error)
            servers = {}
        unowned = {item.key for item in self.database.read(allocations.list_unowned)}
        return {
            item.key: replace(item, has_server=servers.get(item.key))
            for item in candidates
            if item.key in unowned
        }

    def _ask_nova(
        self, candidates: Iterable[UnownedAllocation]
    ) -> Mapping[tuple[str, str, str], bool]:
        """Return whether the server exists. A server that Nova changes is absent."""
        consumers = {item.consumer_uuid for item in candidates}
        missing = self.nova.find_missing_instances(consumers) if consumers else None
        if missing is None:
            return {}
        nodes = {
            uuid: self.nova.find_settled_node(uuid) for uuid in consumers - missing
        }
        return {
            item.key: item.consumer_uuid not in missing
            for item in candidates
            if nodes.get(item.consumer_uuid, item.hostname) == item.hostname
        }

    def clear(self, leak: UnownedAllocation) -> bool:
        """Delete a leaked allocation on its provider; other providers keep theirs.

        :returns: False if Nova does not say that the server is gone, if the consumer is
            a migration of Nova, if an ARQ names it, or if it changes meanwhile
        :raises CyborgError: the database, Placement or Nova does not answer
        """
        uuid = leak.consumer_uuid
        missing = self.nova.find_missing_instances({uuid}) or frozenset()
        if uuid not in missing or self.nova.is_migration(uuid):
            return False
        if self.database.read(allocations.has_arq, uuid):
            return False
        consumer = self.placement.find_consumer(uuid)
        if consumer and not self.placement.shrink_consumer(consumer, leak.rp_uuid):
            return False
        self._copy([leak.rp_uuid], {})
        LOG.warning(
            'Allocation of consumer %s on provider %s (%s), host %s, is deleted: no '
            'ARQ explains it, and Nova has no such server',
            uuid,
            leak.provider_name,
            leak.rp_uuid,
            leak.hostname,
        )
        return True


def _agree(answers: Iterable[bool | None]) -> bool | None:
    """Return the answer that all looks have in common; None: there is none."""
    different = set(answers)
    return different.pop() if len(different) == 1 else None
