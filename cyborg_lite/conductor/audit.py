# SPDX-License-Identifier: Apache-2.0
"""Finds what is held for nobody, and ends it: of servers gone, and of jobs lost.

Who does not answer gives no verdict. Nothing that was touched within the time of grace
is looked at, and a server that may be running never loses its device.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from oslo_log import log

from cyborg_lite.db import audit, clock, orphans, returning
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.arqs import State
from cyborg_lite.model.audit import Finding, Remedy, Report, Suspect, Trouble

LOG = log.getLogger(__name__)

_PAGE: Final = 1000


class Servers(Protocol):
    """Nova, as far as an audit needs it."""

    def missing(self, uuids: Collection[str]) -> frozenset[str] | None: ...

    def is_placed(self, uuid: str) -> bool | None: ...


class Allocations(Protocol):
    """Placement, likewise."""

    def consumers_of(self, provider: str) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class AuditRules:
    """What the operator chose; the time in seconds."""

    grace: float
    require_allocation: bool  # False: servers may have devices without one


class Audit:
    """Looks, and acts where it is told to."""

    def __init__(
        self,
        database: Database,
        servers: Servers,
        allocations: Allocations,
        rules: AuditRules,
    ) -> None:
        self._database = database
        self._servers = servers
        self._allocations = allocations
        self._rules = rules

    def find(self) -> Report:
        """:raises CyborgError: our own database does not answer"""
        before = self._database.read(clock.ago, self._rules.grace)
        findings: list[Finding] = []
        doubts: set[str] = set()
        for page in self._pages(audit.with_device, before):
            findings += self._of_servers(page, doubts)
        for page in self._pages(audit.left_over, before):
            findings += map(_forgotten, page)
        findings += map(_lost, self._database.read(audit.lost_binds, before))
        findings += map(_kept, self._database.read(audit.held_in_vain, before))
        return Report(tuple(findings), tuple(sorted(doubts)))

    def forget_servers(self) -> None:
        """Those that are gone will not come back for accelerators.

        Without a Nova nobody brings servers back.

        :raises CyborgError: our own database does not answer
        """
        before = self._database.read(clock.ago, self._rules.grace)
        last = 0
        while page := self._database.read(returning.memories, before, last, _PAGE):
            last = page[-1].id
            try:
                gone = self._servers.missing({one.instance_uuid for one in page})
            except CyborgError as error:
                LOG.warning('Which servers are gone is not known: %s', error.text)
                return
            ids = [one.id for one in page if gone is None or one.instance_uuid in gone]
            self._database.write(returning.forget, ids)

    def remedy(self, finding: Finding, request_id: str | None) -> bool:
        """Do what the finding says. False: it is not so any more, or not for us.

        :raises CyborgError: our own database does not answer
        """
        suspect, write = finding.suspect, self._database.write
        if finding.remedy is Remedy.DELETE:
            return write(orphans.delete, suspect, request_id)
        if finding.remedy is Remedy.END_BIND:
            return write(orphans.end_bind, suspect, request_id)
        if finding.remedy is Remedy.RELEASE and finding.handle_uuid is not None:
            return write(orphans.clean, suspect, finding.handle_uuid, request_id)
        return False

    def _pages(
        self, read: Callable[..., tuple[Suspect, ...]], before: datetime
    ) -> Iterator[Sequence[Suspect]]:
        """Page by page: a large cloud has many requests, and nearly all are fine."""
        last = 0
        while page := self._database.read(read, before, last, _PAGE):
            yield page
            last = page[-1].id

    def _of_servers(
        self, page: Sequence[Suspect], doubts: set[str]
    ) -> Iterator[Finding]:
        gone = self._gone({one.instance_uuid or '' for one in page}, doubts)
        left = [one for one in page if one.instance_uuid not in gone]
        for suspect in page:
            if suspect.instance_uuid in gone:
                reason = f'Nova has no server {suspect.instance_uuid}.'
                yield Finding(Trouble.SERVER_GONE, suspect, reason, Remedy.DELETE)
        if self._rules.require_allocation:
            yield from self._without_allocation(left, doubts)

    def _gone(self, instances: set[str], doubts: set[str]) -> frozenset[str]:
        try:
            missing = self._servers.missing(instances)
        except CyborgError as error:
            doubts.add(f'Which servers are gone is not known: {error.text}')
            return frozenset()
        if missing is None:
            doubts.add('Which servers are gone is not known: [nova] is not configured.')
        return missing or frozenset()

    def _without_allocation(
        self, page: Sequence[Suspect], doubts: set[str]
    ) -> Iterator[Finding]:
        of_provider: dict[str, list[Suspect]] = defaultdict(list)
        for suspect in page:
            if suspect.state is not State.BIND_FAILED and suspect.device_rp_uuid:
                of_provider[suspect.device_rp_uuid].append(suspect)
        for provider, those in of_provider.items():
            try:
                consumers = self._allocations.consumers_of(provider)
            except CyborgError as error:
                doubts.add(f'What is allocated is not known: {error.text}')
                return
            for suspect in those:
                if suspect.instance_uuid not in consumers:
                    yield self._unallocated(suspect)

    def _unallocated(self, suspect: Suspect) -> Finding:
        """Only a server that is on no host cannot be using its device."""
        try:
            placed = self._servers.is_placed(suspect.instance_uuid or '')
        except CyborgError:
            placed = None
        where = f'on resource provider {suspect.device_rp_uuid}'
        reason = f'Server {suspect.instance_uuid} has no allocation {where}'
        if placed is False:
            reason = f'{reason}, and is on no host.'
            return Finding(Trouble.NO_ALLOCATION, suspect, reason, Remedy.DELETE)
        reason = f'{reason}; it may be running: heal its allocation, or delete it.'
        return Finding(Trouble.NO_ALLOCATION, suspect, reason)


def _forgotten(suspect: Suspect) -> Finding:
    reason = f'It is in state {suspect.state} and was not touched since.'
    return Finding(Trouble.NEVER_BOUND, suspect, reason, Remedy.DELETE)


def _lost(suspect: Suspect) -> Finding:
    reason = 'It is being bound, but there is no job that would do it.'
    return Finding(Trouble.BIND_LOST, suspect, reason, Remedy.END_BIND)


def _kept(held: audit.Held) -> Finding:
    trouble, reason = Trouble.NOT_RELEASED, 'no job will release it.'
    if held.failed_job is not None:
        trouble, reason = Trouble.RELEASE_FAILED, f'job {held.failed_job} has failed.'
    return Finding(
        trouble,
        held.suspect,
        f'It still holds attach handle {held.handle_uuid}, and {reason}',
        Remedy.RELEASE,
        handle_uuid=held.handle_uuid,
        job_uuid=held.failed_job,
    )
