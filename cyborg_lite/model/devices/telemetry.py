# SPDX-License-Identifier: Apache-2.0
"""Telemetry of a device: values that change all the time."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Final

from cyborg_lite.model.inventory.host_report import Health


@dataclass(frozen=True, slots=True)
class Usage:
    """Telemetry of one device. None means not known, which differs from 0."""

    OMITS_DEFAULTS: ClassVar[bool] = True  # in messages

    health: Health = Health.OK
    reason: str = ''  # of a health other than OK
    busy_percent: float | None = None
    memory_used: int | None = None  # bytes
    memory_total: int | None = None  # bytes
    temperature: float | None = None  # degrees Celsius
    power: float | None = None  # watts
    units_used: int | None = None  # existing vGPUs, including foreign ones
    units_total: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)  # errors since host boot


_DEFAULTS: Final[dict[str, Any]] = {
    item.name: {} if item.default is MISSING else item.default for item in fields(Usage)
}
_NUMERIC_FIELDS: Final = tuple(
    sorted(_DEFAULTS.keys() - {'health', 'reason', 'counters'})
)


def telemetry_values(usage: Usage) -> dict[str, float]:
    """Return all known single numbers, by field name."""
    values = {name: getattr(usage, name) for name in _NUMERIC_FIELDS}
    return {name: value for name, value in values.items() if value is not None}


def usage_to_json(usage: Usage) -> dict[str, Any]:
    """Return the fields that differ from their defaults, as a JSON object."""
    return {
        name: value
        for name, default in _DEFAULTS.items()
        if (value := getattr(usage, name)) != default
    }


def usage_from_json(data: Mapping[str, Any]) -> Usage:
    """Return the usage that ``usage_to_json`` converted; ignore unknown keys.

    :raises ValueError: a telemetry value is not a number, or the health is unknown
    """
    values = {name: value for name, value in data.items() if name in _DEFAULTS}
    for name in _NUMERIC_FIELDS:
        if not isinstance(values.get(name, 0), int | float):
            raise ValueError(f'{name} is not a number')
    return Usage(**{**values, 'health': Health(values.get('health', Health.OK))})
