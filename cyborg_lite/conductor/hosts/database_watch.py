# SPDX-License-Identifier: Apache-2.0
"""Notices a database that has lost commits, and begins its quarantine.

Each conductor remembers the latest mark that it has read, which is enough if a replica
takes over while a conductor runs. Agents remember marks on disk, which is enough if all
conductors were stopped.
"""

import threading
import time
from collections.abc import Collection, Sequence
from typing import Final

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.periodic import attempt, repeat
from cyborg_lite.conductor.profiles.device_profiles import read_traits
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.errors.base import CyborgError, InvalidInput
from cyborg_lite.errors.daemons import DatabaseQuarantined
from cyborg_lite.model.arqs.arqs import Arq
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark, DatabaseState
from cyborg_lite.model.hosts.services import AGENT
from cyborg_lite.model.limits import check_message
from cyborg_lite.model.queries import Query
from cyborg_lite.model.traits import OWNER_CYBORG
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)

_INTERVAL: Final = 5.0  # seconds; later commits are not remembered
# An intruder on a host must not use up the numbers.
_MAX_RESTORES: Final = 1000
# Agents remember about the same mark. Some of them may have been cut off.
_WITNESSES: Final = Query(
    {'binary': (AGENT,)}, limit=3, sort_key='heartbeat_at', descending=True
)


class DatabaseWatch:
    """Compares the database with remembered marks. Thread-safe."""

    def __init__(
        self, database: Database, placement: Placement, patience: float = 0.0
    ) -> None:
        self._database = database
        self._placement = placement
        # ``check`` waits for an agent until then; ``patience`` is in seconds.
        self._deadline = time.monotonic() + patience
        self._is_compared = False  # with what an agent remembers
        self._lock = threading.Lock()
        self._mark = NO_MARK  # the latest that this process has read
        self._quarantine = 0  # the incarnation after it; 0: none is known

    @property
    def mark(self) -> DatabaseMark:
        """The latest mark that was read, for agents; none while in quarantine."""
        return NO_MARK if self._quarantine else self._mark

    def compare(self, remembered: DatabaseMark, source: str) -> None:
        """Begin the quarantine if the database lacks a commit; log that once.

        :param remembered: by a daemon
        :param source: the daemon, for the operator
        :raises InvalidInput: the incarnation is forged
        """
        state = self._database.read(incarnations.read_state, remembered)
        if remembered.incarnation > state.mark.incarnation + _MAX_RESTORES:
            reason = f'{source} remembers incarnation {remembered.incarnation}.'
            raise InvalidInput(reason=reason)
        following = state.quarantine.incarnation if state.quarantine else 0
        if state.has_lost(remembered) and remembered.incarnation >= following:
            reason = _describe_loss(state, remembered, source)
            self._database.write(incarnations.begin_quarantine, remembered, reason)
            state = self._database.read(incarnations.read_state)
        self._is_compared = True
        self._record(state)

    def _record(self, state: DatabaseState) -> None:
        with self._lock:
            self._mark = self._mark.merge(state.mark)
            before, quarantine = self._quarantine, state.quarantine
            self._quarantine = quarantine.incarnation if quarantine else 0
        if quarantine is not None and not before:
            LOG.error(
                'The database has lost changes: %s Nothing is bound, released, cleaned '
                'or reconfigured until an operator runs cyborg-lite-manage recover',
                quarantine.reason,
            )
        if before and quarantine is None:
            LOG.info(
                'The quarantine of the database has ended, incarnation %d begins',
                state.mark.incarnation,
            )

    def check(self, agents: Agents) -> bool:
        """Compare the database before the first job, and after it did not answer.

        :returns: False if no agent has said yet what it remembers. Jobs must wait: the
            database may have been restored while all conductors were stopped
        """
        if not self._is_compared:
            witnesses = self._database.read(services.list_services, _WITNESSES)
            for service in witnesses:
                self._ask(agents, service.host)
            # A host whose agent is silent for so long is down: no job changes it.
            self._is_compared |= not witnesses or time.monotonic() >= self._deadline
        self._compare_memory()
        return self._is_compared

    def _ask(self, agents: Agents, host: str) -> None:
        try:
            mark = agents.read_mark(daemon_context(), host)
            check_message(host, mark)
            self.compare(mark, f'The agent of host {host}')
        except CyborgError as error:
            LOG.info('No mark of the database from host %s: %s', host, error.text)

    def _compare_memory(self) -> None:
        if self._is_compared:
            self.compare(self._mark, 'a conductor')

    def run(self, stopping: threading.Event) -> None:
        """Compare the database with the own memory until the stop event is set."""
        subject = 'Reading the mark of the database'
        attempt(self._compare_memory, subject)
        repeat(self._compare_memory, subject, lambda: _INTERVAL, stopping)

    def check_listed(self, instances: Collection[str], arqs: Sequence[Arq]) -> None:
        """Check that ARQs are all of their instances, if the database may lack some.

        In quarantine Placement decides: an instance must have ARQs on exactly those
        providers of this service on which it has allocations. Else a guest would start
        without its devices, or with a device that another guest uses.

        :param arqs: of the instances
        :raises DatabaseQuarantined: ARQs of an instance are missing or out of date
        :raises ServiceUnavailable: Placement does not answer
        """
        # A list without ARQs is rare.
        if arqs and not self._quarantine:
            return
        if self._database.read(incarnations.find_quarantine) is None:
            return
        for instance in instances:
            consumer = self._placement.find_consumer(instance)
            allocated = consumer.providers if consumer else frozenset()
            own = {
                provider
                for provider in allocated
                if OWNER_CYBORG in read_traits(self._placement, provider)
            }
            of_instance = (arq for arq in arqs if arq.instance_uuid == instance)
            if own != {arq.device_rp_uuid for arq in of_instance}:
                raise DatabaseQuarantined()


def _describe_loss(state: DatabaseState, remembered: DatabaseMark, source: str) -> str:
    return (
        f'{source} remembers step {remembered.step} of ARQ '
        f'{remembered.arq_uuid or "unknown"} and usage period {remembered.period} of '
        f'incarnation {remembered.incarnation}; the database has step '
        f'{state.mark.step}, period {state.mark.period}, incarnation '
        f'{state.mark.incarnation}.'
    )
