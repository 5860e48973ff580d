# SPDX-License-Identifier: Apache-2.0
"""Telemetry of a device: values that change all the time."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final

from cyborg_lite.model.inventory import Health


@dataclass(frozen=True, slots=True)
class Usage:
    """Telemetry of one device. None means not known, which differs from 0."""

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


_NUMERIC_FIELDS: Final = {field.name for field in fields(Usage)} - {
    'health',
    'reason',
    'counters',
}


def telemetry_values(usage: Usage) -> dict[str, float]:
    """Return all known single numbers, by field name."""
    values = {name: getattr(usage, name) for name in sorted(_NUMERIC_FIELDS)}
    return {name: value for name, value in values.items() if value is not None}


def usage_to_json(usage: Usage) -> dict[str, Any]:
    """Return the fields that differ from their defaults, as a JSON object."""
    return {
        field.name: getattr(usage, field.name)
        for field in fields(usage)
        if getattr(usage, field.name) != _default(field)
    }


def usage_from_json(data: Mapping[str, Any]) -> Usage:
    """Return the usage that ``usage_to_json`` converted; ignore unknown keys.

    :raises ValueError: a telemetry value is not a number, or the health is unknown
    """
    names = {field.name for field in fields(Usage)}
    values = {name: value for name, value in data.items() if name in names}
    for name in _NUMERIC_FIELDS & values.keys():
        if not isinstance(values[name], int | float):
            raise ValueError(f'{name} is not a number')
    return Usage(**{**values, 'health': Health(values.get('health', Health.OK))})


def _default(field: Field[Any]) -> Any:
    return {} if field.default is MISSING else field.default
