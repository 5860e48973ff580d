# SPDX-License-Identifier: Apache-2.0
"""Which traits Placement was told of our providers, to take them back one day.

A trait is recorded before Placement is told: whoever dies in between leaves a record
too many, which does no harm, and never a trait that nobody knows to be ours.
"""

from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import ProviderTraits as Row
from cyborg_lite.db.upsert import Upsert

_RECORD: Final = Upsert(Row, [Row.rp_uuid], ['traits'])


def record(session: Session, told: Mapping[str, Collection[str]]) -> None:
    """By uuid of the provider: all that it may have of us. One statement."""
    # In one order for all: two transactions must not wait for each other.
    rows = [
        {'rp_uuid': uuid, 'traits': sorted(traits)}
        for uuid, traits in sorted(told.items())
    ]
    if rows:
        _RECORD.run(session, rows)


def forget(session: Session, rp_uuids: Collection[str]) -> None:
    """Of providers that are deleted."""
    if rp_uuids:
        change(session, delete(Row).where(Row.rp_uuid.in_(rp_uuids)))
