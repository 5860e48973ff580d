# SPDX-License-Identifier: Apache-2.0
"""Loaded regions: the bitstream in a region, and the one that a release loads again.

The previous bitstream is stored before the host is told to load another one. So the
transaction that ends the bind, or a release after a crash, knows what to load.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.tables import Deployable, LoadedRegion
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.limits import REASON_MAX_LENGTH


@dataclass(frozen=True, slots=True)
class PreviousLoad:
    """The content of a region before a bind changed it."""

    bitstream: Bitstream | None  # None: Cyborg had not loaded anything
    function_id: str  # as the hardware reported it; empty: none, or not reported


# Any: JSON that this module has written.
def parse_bitstream(stored: Mapping[str, Any] | None) -> Bitstream | None:
    """Return the bitstream of a column; ignore fields of newer conductors."""
    return None if stored is None else codec.load(Bitstream, stored)


def record_bind_load(session: Session, deployable_id: int, function_id: str) -> None:
    """Store the content of a region before a bind loads another bitstream.

    If an earlier attempt of a bind has stored it already, nothing is changed.

    :param function_id: the function id that the hardware reports now
    """
    row = _find_row(session, deployable_id)
    if row is not None and row.changed_by_bind:
        return
    values = {
        'previous_bitstream': row.bitstream if row is not None else None,
        # Without a bitstream, the function is that of an earlier instance.
        'previous_function_id': function_id if row is None or row.bitstream else '',
        'changed_by_bind': True,
    }
    _write(session, deployable_id, values)


def find_previous_load(session: Session, deployable_id: int) -> PreviousLoad | None:
    """Return the content of the region before the bind.

    :returns: None if no bind has changed the region since its last release
    """
    row = _find_row(session, deployable_id)
    if row is None or not row.changed_by_bind:
        return None
    bitstream = parse_bitstream(row.previous_bitstream)
    return PreviousLoad(bitstream, row.previous_function_id)


def record_loaded_bitstream(
    session: Session, deployable_id: int, bitstream: Bitstream
) -> None:
    """Store the bitstream that was loaded; the region is usable."""
    values = {'bitstream': codec.dump(bitstream), 'unusable_reason': ''}
    _write(session, deployable_id, values)


def mark_unusable(session: Session, deployable_id: int, reason: str) -> None:
    """Store that the content of the region is unknown or must not be used."""
    values = {'bitstream': None, 'unusable_reason': reason[:REASON_MAX_LENGTH]}
    _write(session, deployable_id, values)


def clear_previous_load(session: Session, deployable_id: int) -> None:
    """Store that a release has restored the region, as far as possible."""
    values = {
        'changed_by_bind': False,
        'previous_bitstream': None,
        'previous_function_id': '',
    }
    region = LoadedRegion.deployable_id == deployable_id
    change(session, update(LoadedRegion).where(region).values(**values))


def delete_regions_of_card(session: Session, device_id: int) -> None:
    """Delete the rows of all regions of a card, because a new shell has reset them."""
    deployables = select(Deployable.id).where(Deployable.device_id == device_id)
    regions = LoadedRegion.deployable_id.in_(deployables)
    change(session, delete(LoadedRegion).where(regions))


def _find_row(session: Session, deployable_id: int) -> LoadedRegion | None:
    region = LoadedRegion.deployable_id == deployable_id
    return session.scalar(select(LoadedRegion).where(region))


# Any: column values.
def _write(session: Session, deployable_id: int, values: dict[str, Any]) -> None:
    region = LoadedRegion.deployable_id == deployable_id
    if not change(session, update(LoadedRegion).where(region).values(**values)):
        new = insert(LoadedRegion).values(deployable_id=deployable_id, **values)
        session.execute(new)
