# SPDX-License-Identifier: Apache-2.0
"""What stands in regions by our doing, and what a release has to bring back.

What a bind is about to change is written down before its host is told to load, so that
whoever ends the bind, or cleans up after it, knows what was there before.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import Deployable, LoadedRegion
from cyborg_lite.model.bitstreams import Bitstream

_LONGEST_REASON: Final = 255
_FIELDS: Final = frozenset(field.name for field in fields(Bitstream))


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was in a region before a bind changed it."""

    bitstream: Bitstream | None  # None: nothing that we had loaded
    function_id: str  # as the hardware showed it; empty: none, or it did not


# Any: JSON of our own making.
def read(kept: Mapping[str, Any] | None) -> Bitstream | None:
    """The bitstream that a column holds; a newer conductor may have kept more of it."""
    if kept is None:
        return None
    return Bitstream(**{key: kept[key] for key in kept if key in _FIELDS})


def intend(session: Session, deployable_id: int, function_id: str) -> None:
    """A bind is about to load into it. What was there before the first try counts."""
    row = _row(session, deployable_id)
    if row is not None and row.changed:
        return
    loaded = row.loaded if row is not None else None
    values = {'earlier': loaded, 'earlier_function': function_id, 'changed': True}
    _set(session, deployable_id, row, values)


def earlier(session: Session, deployable_id: int) -> Earlier | None:
    """None: no bind has changed it since it was released last."""
    row = _row(session, deployable_id)
    if row is None or not row.changed:
        return None
    return Earlier(read(row.earlier), row.earlier_function)


def keep(session: Session, deployable_id: int, bitstream: Bitstream) -> None:
    """It was loaded, and whoever gets the region can use it."""
    values = {'loaded': asdict(bitstream), 'unusable': ''}
    _set(session, deployable_id, _row(session, deployable_id), values)


def close(session: Session, deployable_id: int, reason: str) -> None:
    """Nobody knows what is in it, or nobody shall have what is."""
    values = {'loaded': None, 'unusable': reason[:_LONGEST_REASON]}
    _set(session, deployable_id, _row(session, deployable_id), values)


def undone(session: Session, deployable_id: int) -> None:
    """What a bind had changed is undone, as far as it can be."""
    values = {'changed': False, 'earlier': None, 'earlier_function': ''}
    mine = LoadedRegion.deployable_id == deployable_id
    change(session, update(LoadedRegion).where(mine).values(**values))


def forget_card(session: Session, device_id: int) -> None:
    """A new shell has emptied all regions of the card."""
    of_card = select(Deployable.id).where(Deployable.device_id == device_id)
    those = LoadedRegion.deployable_id.in_(of_card)
    change(session, delete(LoadedRegion).where(those))


def _row(session: Session, deployable_id: int) -> LoadedRegion | None:
    mine = LoadedRegion.deployable_id == deployable_id
    return session.scalar(select(LoadedRegion).where(mine))


# Any: column values.
def _set(
    session: Session,
    deployable_id: int,
    row: LoadedRegion | None,
    values: dict[str, Any],
) -> None:
    if row is not None:
        mine = LoadedRegion.deployable_id == deployable_id
        change(session, update(LoadedRegion).where(mine).values(**values))
        return
    fresh = {
        'deployable_id': deployable_id,
        'loaded': None,
        'changed': False,
        'earlier': None,
        'earlier_function': '',
        'unusable': '',
    }
    session.execute(insert(LoadedRegion).values(**{**fresh, **values}))
