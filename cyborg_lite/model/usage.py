# SPDX-License-Identifier: Apache-2.0
"""How a device is doing at one moment: figures that change all the time."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final

from cyborg_lite.model.inventory import Health


@dataclass(frozen=True, slots=True)
class Usage:
    """None: not known, which is never the same as 0."""

    health: Health = Health.OK
    reason: str = ''  # of any health but OK
    busy_percent: float | None = None
    memory_used: int | None = None  # bytes
    memory_total: int | None = None  # bytes
    temperature: float | None = None  # degrees Celsius
    power: float | None = None  # watts
    units_used: int | None = None  # vGPUs that exist, whoever made them
    units_total: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)  # errors since boot


_FIGURES: Final = {field.name for field in fields(Usage)} - {
    'health',
    'reason',
    'counters',
}


def figures(usage: Usage) -> dict[str, float]:
    """All that are single numbers and known, by name."""
    found = {name: getattr(usage, name) for name in sorted(_FIGURES)}
    return {name: figure for name, figure in found.items() if figure is not None}


def compact(usage: Usage) -> dict[str, Any]:
    """What is known, as JSON has it; values of the types of the fields."""
    return {
        field.name: getattr(usage, field.name)
        for field in fields(usage)
        if getattr(usage, field.name) != _default(field)
    }


def expanded(said: Mapping[str, Any]) -> Usage:
    """What ``compact`` was made from; words that we do not know are left out.

    :raises ValueError: a figure is no number
    """
    known = {field.name for field in fields(Usage)}
    values = {name: value for name, value in said.items() if name in known}
    for name in _FIGURES & values.keys():
        if not isinstance(values[name], int | float):
            raise ValueError(f'{name} is no number')
    return Usage(**{**values, 'health': Health(values.get('health', Health.OK))})


def _default(field: Field[Any]) -> Any:
    return {} if field.default is MISSING else field.default
