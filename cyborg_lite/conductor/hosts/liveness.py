# SPDX-License-Identifier: Apache-2.0
"""Detection of daemons that stop or resume sending heartbeats."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.periodic import repeat
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.services import AGENT, Service, ServiceState

LOG = log.getLogger(__name__)

_AGENT_DOWN: Final = (
    '. Free devices of the host are reserved in Placement; the state of its ARQs is '
    'unknown'
)
_LONGEST_PAUSE: Final = 10.0  # seconds between two checks
# The help of agent_down_after advises a value of at least three heartbeat intervals.
_HEARTBEATS: Final = 3
_BATCH_SIZE: Final = 500  # services per transaction
_MAX_LOGGED: Final = 20  # services of a batch that get a line each
_CHANGES: Final = (
    (ServiceState.UP, logging.WARNING, 'down'),
    (ServiceState.STOPPED, logging.WARNING, 'down'),
    (ServiceState.DOWN, logging.INFO, 'up'),
)


def check_hosts_up(handles: Sequence[AllocatedHandle]) -> None:
    """Check that the agents of the handles are up, before they are called.

    A call of an agent that is down would occupy a worker thread until it times out.

    :raises HostAway: one of the agents is down
    """
    for handle in handles:
        if handle.host_down:
            raise HostAway(host=handle.hostname)


@dataclass(slots=True)
class LivenessMonitor:
    """Marks daemons as down or up. Any number of conductors may run it.

    Each change of state is made by exactly one conductor. After an outage of the
    conductor, database or message bus, all heartbeats look old. The same happens when
    the clock of the database is set forward. The monitor then waits
    ``agent_down_after`` before it marks a daemon as down.
    """

    database: Database
    wake: Callable[[], None]  # called when jobs were written
    down_after: float  # seconds without a heartbeat after which a daemon is down
    stopping: threading.Event
    # Returns True if a message to the conductors arrives now.
    check_bus: Callable[[], bool] = lambda: True
    # Start of the time without an outage, by the monotonic clock. None: outage.
    _receiving_since: float | None = field(default=None, init=False)
    _last_check: float = field(default=0.0, init=False)  # by the monotonic clock
    # None: before the first check.
    _last_oldest: datetime | None = field(default=None, init=False)

    def run(self) -> None:
        """Check the daemons until the stop event is set."""
        pause = min(_LONGEST_PAUSE, self.down_after / 5)
        repeat(
            lambda: self.check_services(time.monotonic()),
            'Checking the heartbeats of daemons',
            lambda: pause,
            self.stopping,
        )

    def check_services(self, moment: float) -> None:
        """Check all daemons once.

        :param moment: current time of the monotonic clock, in seconds
        """
        # The bus is checked first. Heartbeats that it delivers meanwhile are then in
        # the database when the services are read.
        bus_works = self.check_bus()
        oldest = self.database.read(clock.read_time_before, self.down_after)
        if self._last_oldest is None or oldest < self._last_oldest:
            self.database.write(services.limit_heartbeats)
        stale = self.database.read(services.list_stale_services, oldest)
        if self._receiving_since is None or self._had_outage(moment, oldest):
            self._receiving_since = moment
        if not bus_works:
            self._receiving_since = None
        self._last_check, self._last_oldest = moment, oldest
        since = self._receiving_since
        may_mark_down = since is not None and moment - since >= self.down_after
        self._switch_states(
            [
                service
                for service in stale
                if service.state is ServiceState.DOWN or may_mark_down
            ],
            oldest,
        )

    def _had_outage(self, moment: float, oldest: datetime) -> bool:
        """Check for a gap since the last check, by both clocks."""
        elapsed = moment - self._last_check
        if elapsed > self.down_after or self._last_oldest is None:
            return True
        elapsed_in_database = (oldest - self._last_oldest).total_seconds()
        return elapsed_in_database - elapsed > self.down_after / _HEARTBEATS

    def _switch_states(self, stale: Sequence[Service], oldest: datetime) -> None:
        for first in range(0, len(stale), _BATCH_SIZE):
            batch = stale[first : first + _BATCH_SIZE]
            switched = self.database.write(services.switch_states, batch, oldest, first)
            if switched:  # else another conductor has changed the states
                _log_changes(switched)
                self.wake()


def _log_changes(switched: Sequence[Service]) -> None:
    """Log each service, or one line for many services, by their former state."""
    for state, level, text in _CHANGES:
        changed = [service for service in switched if service.state is state]
        if len(changed) <= _MAX_LOGGED:
            for service in changed:
                _log_change(service)
            continue
        hosts = [service.host for service in changed]
        LOG.log(
            level,
            '%d daemons are %s, on the hosts %s and %d more',
            len(hosts),
            text,
            ', '.join(hosts[:_MAX_LOGGED]),
            len(hosts) - _MAX_LOGGED,
        )


def _log_change(service: Service) -> None:
    if service.state is not ServiceState.DOWN:
        LOG.warning(
            '%s on host %s is down: last heartbeat at %s%s',
            service.binary,
            service.host,
            service.heartbeat_at.isoformat(timespec='seconds'),
            _AGENT_DOWN if service.binary == AGENT else '',
        )
    else:
        LOG.info(
            '%s on host %s is up: heartbeats have resumed', service.binary, service.host
        )
