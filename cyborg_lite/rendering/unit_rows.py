# SPDX-License-Identifier: Apache-2.0
"""Rows of units in a picture. A box with many units shows the first ones only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cyborg_lite.model.hosts.topology import Availability, TopologyUnit, count_units
from cyborg_lite.rendering.outline import describe_counts, describe_unit

_MAX_ROWS: Final = 16  # more would make the picture of a document illegible
_UUID_HEAD: Final = 8  # characters of a uuid that identify it in a picture


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A line of a box, with a mark for the availability of the unit."""

    text: str
    full_text: str  # shown when the pointer rests on the row
    availability: Availability | None  # None: the row stands for several units


def list_unit_rows(units: Sequence[TopologyUnit]) -> tuple[UnitRow, ...]:
    """Return one row per unit; the last row may stand for several."""
    limit = _MAX_ROWS if len(units) <= _MAX_ROWS else _MAX_ROWS - 1
    rows = [_build_row(unit) for unit in units[:limit]]
    if len(units) > limit:
        text = f'and {describe_counts(count_units(units[limit:]))}'
        rows.append(UnitRow(text, text, None))
    return tuple(rows)


def _build_row(unit: TopologyUnit) -> UnitRow:
    user = unit.user
    words = [unit.name]
    if user is not None:
        words.append(user.device_profile_name)
        if user.instance_uuid:
            words.append(f'instance {user.instance_uuid[:_UUID_HEAD]}')
        if user.project_id:
            words.append(f'project {user.project_id[:_UUID_HEAD]}')
    elif unit.reason:
        words.append(unit.reason)
    full = unit.name, unit.type, str(unit.availability), describe_unit(unit)
    return UnitRow('  '.join(words), ', '.join(filter(None, full)), unit.availability)
