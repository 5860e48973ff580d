# SPDX-License-Identifier: Apache-2.0
"""Periodic comparison of all hosts with Placement."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cyborg_lite.conductor.periodic import repeat
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.providers import providers

_PERIOD: Final = 60.0  # seconds between two runs of the loop


@dataclass(frozen=True, slots=True)
class PlacementAuditScheduler:
    """Schedules Placement sync jobs. Any number of conductors may run it."""

    database: Database
    wake: Callable[[], None]  # called when jobs were written
    interval: float  # seconds in which each host is compared once; 0: never
    stopping: threading.Event

    def run(self) -> None:
        """Schedule jobs until the stop event is set."""
        subject = 'Scheduling Placement audits'
        repeat(self.schedule, subject, lambda: _PERIOD, self.stopping)

    def schedule(self) -> None:
        """Schedule the jobs of one period.

        :raises CyborgError: the database does not answer
        """
        scheduled = self.database.write(providers.schedule_conflict_checks)
        if self.interval:
            scheduled += self.database.write(
                providers.schedule_placement_audits, self.interval, _PERIOD
            )
        if scheduled:
            self.wake()
