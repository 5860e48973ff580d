# SPDX-License-Identifier: Apache-2.0
"""Finds the daemons that have gone silent, and those that are back."""

import threading
import time
from collections.abc import Callable
from typing import Final

from oslo_log import log

from cyborg_lite.db import clock, liveness, services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.services import Service, ServiceState

LOG = log.getLogger(__name__)

_OF_AGENT: Final = (
    ' Nothing new is placed on the devices of the host, and whether those that need it '
    'are well is not known.'
)
_LONGEST_PAUSE: Final = 10.0  # seconds between two looks


class Liveness:
    """A loop that any number of conductors may run: of each change one wins.

    Whoever was away itself, or had no database, or no bus, has heard of nobody
    meanwhile. It gives all the others the time to be heard before it calls anyone
    silent.
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
        if self._listening_since is None or moment - self._last_look > self._patience:
            self._listening_since = moment
        if not hears:
            self._listening_since = None
        self._last_look = moment
        since = self._listening_since
        may_judge = since is not None and moment - since >= self._patience
        for service in found:
            if service.state is ServiceState.DOWN or may_judge:
                self._turn(
                    service, self._database.write(liveness.turn, service, oldest)
                )

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
