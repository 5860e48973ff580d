# SPDX-License-Identifier: Apache-2.0
"""Periodic comparison of all hosts with Placement."""

import threading
from collections.abc import Callable
from typing import Final

from oslo_log import log

from cyborg_lite.db import providers
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError

LOG = log.getLogger(__name__)

_PERIOD: Final = 60.0  # seconds between two runs of the loop


class PlacementAuditScheduler:
    """Schedules Placement sync jobs. Any number of conductors may run it."""

    def __init__(
        self,
        database: Database,
        wake: Callable[[], None],
        interval: float,
        stopping: threading.Event,
    ) -> None:
        """Prepare the loop.

        :param wake: called when jobs were written
        :param interval: seconds in which each host is compared once; 0: never
        """
        self._database = database
        self._wake = wake
        self._interval = interval
        self._stopping = stopping

    def run(self) -> None:
        """Schedule jobs until the stop event is set."""
        while not self._stopping.wait(_PERIOD):
            try:
                self.schedule()
            except CyborgError as error:
                LOG.error('Scheduling Placement audits failed: %s', error.text)
            except Exception:  # a programming error must not end the thread
                LOG.exception('Scheduling Placement audits failed')

    def schedule(self) -> None:
        """Schedule the jobs of one period.

        :raises CyborgError: the database does not answer
        """
        scheduled = self._database.write(providers.schedule_conflict_checks)
        if self._interval:
            scheduled += self._database.write(
                providers.schedule_placement_audits, self._interval, _PERIOD
            )
        if scheduled:
            self._wake()
