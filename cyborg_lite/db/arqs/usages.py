# SPDX-License-Identifier: Apache-2.0
"""Use of units: the periods that have ended, and the sums over a time.

The row of an ARQ contains the start of its current period. The statement that ends the
use stores the period in ``usage_periods``, in the transaction of the change.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    union_all,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_ms, read_now_ms
from cyborg_lite.db.core.tables import Arq, UsagePeriod
from cyborg_lite.db.jobs import outbox
from cyborg_lite.errors.arqs import UsageTooLarge
from cyborg_lite.model.arqs.usages import MAX_ROWS, UnitUsage, UsageQuery, UsageReport

_USED: Final = and_(Arq.bound_at.is_not(None), Arq.resource_class != '')
_NAMES: Final = 'project_id', 'resource_class', 'device_profile_name'
_COPIED: Final = (*_NAMES, 'hostname', 'instance_uuid')
_END: Final = insert(UsagePeriod).from_select(
    ('arq_uuid', *_COPIED, 'started_at', 'ended_at'),
    select(
        Arq.uuid,
        *(getattr(Arq, name) for name in _COPIED),
        Arq.bound_at,
        # The clock of the database may have been set back.
        case((now_ms() < Arq.bound_at, Arq.bound_at), else_=now_ms()),
    ).where(Arq.uuid.in_(bindparam('uuids')), _USED),
)


def end_periods(session: Session, uuids: Sequence[str]) -> None:
    """Store the periods of ARQs whose use ends, in one statement.

    The caller has locked the rows, and deletes them or sets ``bound_at`` to NULL in the
    same transaction.
    """
    if change(session, _END, {'uuids': uuids}):
        outbox.add_uses(session, uuids)


def sum_usages(session: Session, query: UsageQuery) -> UsageReport:
    """Return the use of units within a time, in two SELECTs.

    :raises UsageTooLarge: there are more sums than one answer may contain
    """
    end = min(query.end, read_now_ms(session))
    if end <= query.start:
        return UsageReport((), end)
    former_periods = _select(
        UsagePeriod, query, UsagePeriod.started_at, UsagePeriod.ended_at
    )
    present_periods = _select(Arq, query, Arq.bound_at, _literal(end))
    periods = union_all(
        former_periods.where(
            UsagePeriod.ended_at > query.start, UsagePeriod.started_at < end
        ),
        present_periods.where(_USED, Arq.bound_at < end),
    ).subquery()
    start, period_end = periods.c.started_at, periods.c.ended_at
    lower = case((start < query.start, _literal(query.start)), else_=start)
    upper = case((period_end > end, _literal(end)), else_=period_end)
    keys = [periods.c[name] for name in _NAMES]
    statement: Select[*tuple[Any, ...]] = (
        select(*keys, func.sum(upper - lower))
        .group_by(*keys)
        .order_by(*keys)
        .limit(MAX_ROWS + 1)
    )
    rows = session.execute(statement).all()
    if len(rows) > MAX_ROWS:
        raise UsageTooLarge(limit=MAX_ROWS)
    usages = (UnitUsage(row[0], row[1], row[2], int(row[3])) for row in rows)
    return UsageReport(tuple(usages), end)


def _literal(moment: int) -> ColumnElement[int]:
    # The type is stated, because the driver would send a number of 32 bits.
    return literal(moment, BigInteger)


# Any: a class of `tables`; columns of several types.
def _select(table: Any, query: UsageQuery, *times: Any) -> Select[*tuple[Any, ...]]:
    statement: Select[*tuple[Any, ...]] = select(
        *(getattr(table, name) for name in _NAMES), *times
    )
    if query.project_id is not None:
        statement = statement.where(table.project_id == query.project_id)
    return statement


def delete_old_periods(session: Session, seconds: int) -> int:
    """Delete periods that ended over ``seconds`` ago; return their number.

    The latest one stays, because the mark of the database must not fall.
    """
    # MySQL reads the table of a DELETE in a derived table only.
    latest = select(func.max(UsagePeriod.id).label('id')).subquery()
    old = delete(UsagePeriod).where(
        UsagePeriod.ended_at < now_ms() - seconds * 1000,
        UsagePeriod.id < select(latest.c.id).scalar_subquery(),
    )
    return change(session, old)
