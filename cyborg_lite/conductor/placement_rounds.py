# SPDX-License-Identifier: Apache-2.0
"""Compares all hosts with Placement, one after the other, for ever."""

import threading
from collections.abc import Callable
from typing import Final

from oslo_log import log

from cyborg_lite.db import placement_rounds
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError

LOG = log.getLogger(__name__)

_PAUSE: Final = 60.0  # seconds between two looks


class PlacementRounds:
    """A loop that only calls for jobs, and that any number of conductors may run."""

    def __init__(
        self,
        database: Database,
        wake: Callable[[], None],
        interval: float,
        stopping: threading.Event,
    ) -> None:
        """:param wake: whoever runs jobs: there is a new one
        :param interval: seconds in which each host has its turn; 0: never
        """
        self._database = database
        self._wake = wake
        self._interval = interval
        self._stopping = stopping

    def run(self) -> None:
        """Until it is told to stop."""
        while not self._stopping.wait(_PAUSE):
            try:
                self.look()
            except CyborgError as error:
                LOG.error('Cannot call for audits of Placement: %s', error.text)
            except Exception:  # a mistake of ours must not end the loop
                LOG.exception('Cannot call for audits of Placement.')

    def look(self) -> None:
        """Once.

        :raises CyborgError: the database does not answer, or complains
        """
        called = self._database.write(placement_rounds.call_contested)
        if self._interval:
            called += self._database.write(
                placement_rounds.call, self._interval, _PAUSE
            )
        if called:
            self._wake()
