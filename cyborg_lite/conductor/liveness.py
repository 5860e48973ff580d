# SPDX-License-Identifier: Apache-2.0
"""Finds the daemons that have gone silent, and those that are back."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from oslo_log import log

from cyborg_lite.db import clock, liveness, services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError, HostAway
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.services import Service, ServiceState

LOG = log.getLogger(__name__)

_OF_AGENT: Final = (
    ' Nothing new is placed on the devices of the host, and whether those that need it '
    'are well is not known.'
)
_LONGEST_PAUSE: Final = 10.0  # seconds between two looks
_HEARTBEATS: Final = 3  # that fit into the patience, as its option advises


def check_heard(handles: Sequence[HeldHandle]) -> None:
    """Before a host is asked: one that is known to be silent would not answer.

    Waiting for it in vain would keep others waiting for a worker.

    :raises HostAway: the agent of one of their hosts is down
    """
    for handle in handles:
        if handle.host_silent:
            raise HostAway(host=handle.hostname)


class Liveness:
    """A loop that any number of conductors may run: of each change one wins.

    Whoever was away itself, or had no database, or no bus, has heard of nobody
    meanwhile, and when the clock of the database is put forward everyone seems silent.
    Then all the others get the time to be heard before anyone is called so.
    """

    def __init__(
        self,
        database: Database,
        wake: Callable[[], None],
        patience: float,
        stopping: threading.Event,
        hears: Callable[[], bool] = lambda: True,
    ) -> None:
        """:param wake: whoever runs jobs: there is a new one
        :param patience: seconds without a heartbeat until a daemon is down
        :param hears: whether a message to the conductors arrives at one, now
        """
        self._database = database
        self._wake = wake
        self._patience = patience
        self._stopping = stopping
        self._hears = hears
        # By the monotonic clock; None: nothing was heard so far.
        self._listening_since: float | None = None
        self._last_look = 0.0
        self._last_oldest: datetime | None = None  # None: there was no look

    def run(self) -> None:
        """Until it is told to stop."""
        pause = min(_LONGEST_PAUSE, self._patience / 5)
        while not self._stopping.wait(pause):
            try:
                self.look(time.monotonic())
            except CyborgError as error:
                LOG.error('Cannot look for silent daemons: %s', error.text)
            except Exception:  # a mistake of ours must not end the loop
                LOG.exception('Cannot look for silent daemons.')

    def look(self, moment: float) -> None:
        """Once, at a moment of the monotonic clock.

        :raises CyborgError: the database does not answer, or complains
        """
        # First of all: what it lets us hear is in the database when we look there.
        hears = self._hears()
        oldest = self._database.read(clock.ago, self._patience)
        found = self._database.read(liveness.misjudged, oldest)
        if self._listening_since is None or self._missed_some(moment, oldest):
            self._listening_since = moment
        if not hears:
            self._listening_since = None
        self._last_look, self._last_oldest = moment, oldest
        since = self._listening_since
        may_judge = since is not None and moment - since >= self._patience
        for service in found:
            if service.state is ServiceState.DOWN or may_judge:
                self._turn(
                    service, self._database.write(liveness.turn, service, oldest)
                )

    def _missed_some(self, moment: float, oldest: datetime) -> bool:
        """Whether much time has gone of which we know nothing, by either clock."""
        passed = moment - self._last_look
        if passed > self._patience or self._last_oldest is None:
            return True
        by_database = (oldest - self._last_oldest).total_seconds()
        return by_database - passed > self._patience / _HEARTBEATS

    def _turn(self, service: Service, ours: bool) -> None:
        if not ours:
            return
        if service.state is ServiceState.UP:
            LOG.warning(
                '%s on host %s is down, silent since %s.%s',
                service.binary,
                service.host,
                service.heartbeat_at.isoformat(timespec='seconds'),
                _OF_AGENT if service.binary == services.AGENT else '',
            )
        else:
            LOG.info('%s on host %s is back.', service.binary, service.host)
        self._wake()
