# SPDX-License-Identifier: Apache-2.0
"""Faults of daemons that conductors see, such as refused messages."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import delete, select, tuple_
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_utc, read_time_before
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import Fault as Row
from cyborg_lite.model.hosts.services import Fault, FaultKey

_KEY: Final = Row.kind, Row.host, Row.name
_UPSERT: Final = Upsert(
    Row,
    _KEY,
    ('reason', 'seen_at'),
    computed={'since': now_utc(), 'seen_at': now_utc()},
)
_FAULT: Final = Record(Fault, Row)


def list_faults(session: Session, limit: int) -> tuple[Fault, ...]:
    """Return the faults, the oldest first."""
    rows = session.execute(_FAULT.select().order_by(Row.since, Row.id).limit(limit))
    return tuple(map(_FAULT.read, rows))


def record_faults(
    session: Session,
    faults: Collection[Fault],
    former: Collection[FaultKey],
    lifetime: float,
) -> None:
    """Store faults that exist now, and delete those that have ended.

    :param former: keys of faults that have ended
    :param lifetime: seconds after which a fault that was not seen again has ended
    """
    oldest = read_time_before(session, lifetime)
    is_old = Row.seen_at < oldest
    if session.scalar(select(Row.id).where(is_old).limit(1)) is not None:
        change(session, delete(Row).where(is_old))
    if former:
        change(session, delete(Row).where(tuple_(*_KEY).in_([*former])))
    # All conductors lock the rows in this order.
    names = 'kind', 'host', 'name', 'reason'
    rows = [{name: getattr(fault, name) for name in names} for fault in faults]
    if rows:
        _UPSERT.run(session, sorted(rows, key=lambda row: tuple(row.values())))
