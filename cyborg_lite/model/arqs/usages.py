# SPDX-License-Identifier: Apache-2.0
"""Use of accelerator units by projects.

A unit is used from the end of a successful bind until its ARQ is unbound, deleted or
loses its device. A unit that is idle, or whose host is down, is used as well.
"""

from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_OID, uuid5

MAX_ROWS: Final = 10_000
"""Largest number of sums in one answer."""

MAX_DAYS: Final = 366
"""Longest time for which use is summed."""

_MS_PER_HOUR: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A time and the projects whose use is summed."""

    # Milliseconds since the epoch.
    start: int
    end: int
    project_id: str | None = None  # None: all projects


@dataclass(frozen=True, slots=True)
class UnitUsage:
    """The use of units of one resource class, with one device profile."""

    project_id: str | None  # None: the ARQs had no project
    resource_class: str
    device_profile_name: str
    milliseconds: int

    @property
    def uuid(self) -> str:
        """The uuid that marks the use in a list, made of project, class and profile."""
        keys = self.project_id, self.resource_class, self.device_profile_name
        return str(uuid5(NAMESPACE_OID, repr(keys)))

    @property
    def unit_hours(self) -> float:
        """The number of units multiplied by the hours of their use."""
        return round(self.milliseconds / _MS_PER_HOUR, 6)


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The sums for a time, by project, resource class and device profile."""

    usages: tuple[UnitUsage, ...]
    # Milliseconds; the present time if the end of the query lies in the future.
    end: int = 0
