# SPDX-License-Identifier: Apache-2.0
"""Telemetry of a device: values that change all the time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Final

from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.limits import LIMITS

MAX_COUNTERS: Final = LIMITS['Usage.counters']


@dataclass(frozen=True, slots=True)
class Usage:
    """Telemetry of one device. None means not known, which differs from 0."""

    OMITS_DEFAULTS: ClassVar[bool] = True  # in messages and in the database

    health: Health = Health.OK
    reason: str = ''  # of a health other than OK
    busy_percent: float | None = None
    memory_used: int | None = None  # bytes
    memory_total: int | None = None  # bytes
    temperature: float | None = None  # degrees Celsius
    power: float | None = None  # watts
    units_used: int | None = None  # existing vGPUs, including foreign ones
    units_total: int | None = None
    # Error counters and states, which health rules compare.
    counters: Mapping[str, int] = field(default_factory=dict)


_NUMERIC_FIELDS: Final = tuple(
    sorted({item.name for item in fields(Usage)} - {'health', 'reason', 'counters'})
)


def telemetry_values(usage: Usage) -> dict[str, float]:
    """Return all known single numbers, by field name."""
    values = {name: getattr(usage, name) for name in _NUMERIC_FIELDS}
    return {name: value for name, value in values.items() if value is not None}
