# SPDX-License-Identifier: Apache-2.0
"""Use of units: the periods that have ended, and the sums over a time.

The row of an ARQ contains the start of its current period. The statement that ends the
use stores the period in ``usage_periods``, in the transaction of the change.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
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
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite.db import outbox
from cyborg_lite.db.change import change, value_by_row
from cyborg_lite.db.clock import now_ms, read_now_ms
from cyborg_lite.db.tables import Arq, ArqEvent, AttachHandle, Deployable, UsagePeriod
from cyborg_lite.model.arqs import DEVICE_IN_USE_STATES, State
from cyborg_lite.model.device_profiles import Group
from cyborg_lite.model.project_errors import UsageTooLarge
from cyborg_lite.model.usages import MAX_ROWS, UnitUsage, UsageQuery, UsageReport

_USED: Final = and_(Arq.bound_at.is_not(None), Arq.resource_class != '')
_COLUMNS: Final = (
    'arq_uuid',
    'project_id',
    'resource_class',
    'device_profile_name',
    'hostname',
    'instance_uuid',
    'started_at',
    'ended_at',
)
_END: Final = insert(UsagePeriod).from_select(
    _COLUMNS,
    select(
        Arq.uuid,
        Arq.project_id,
        Arq.resource_class,
        Arq.device_profile_name,
        Arq.hostname,
        Arq.instance_uuid,
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
    periods = union_all(
        _select_ended(query.start, end, query.project_id),
        _select_current(end, query.project_id),
    ).subquery()
    start, period_end = periods.c.started_at, periods.c.ended_at
    lower = case((start < query.start, _literal(query.start)), else_=start)
    upper = case((period_end > end, _literal(end)), else_=period_end)
    keys = (
        periods.c.project_id,
        periods.c.resource_class,
        periods.c.device_profile_name,
    )
    statement = (
        select(*keys, func.sum(upper - lower))
        .group_by(*keys)
        .order_by(*keys)
        .limit(MAX_ROWS + 1)
    )
    rows = session.execute(statement).all()
    if len(rows) > MAX_ROWS:
        raise UsageTooLarge(limit=MAX_ROWS)
    usages = (
        UnitUsage(project, resource_class, profile, int(total))
        for project, resource_class, profile, total in rows
    )
    return UsageReport(tuple(usages), end)


def _literal(moment: int) -> ColumnElement[int]:
    # The type is stated, because the driver would send a number of 32 bits.
    return literal(moment, BigInteger)


def _select_ended(
    start: int, end: int, project: str | None
) -> Select[*tuple[Any, ...]]:
    statement: Select[*tuple[Any, ...]] = select(
        UsagePeriod.project_id,
        UsagePeriod.resource_class,
        UsagePeriod.device_profile_name,
        UsagePeriod.started_at,
        UsagePeriod.ended_at,
    ).where(UsagePeriod.ended_at > start, UsagePeriod.started_at < end)
    if project is not None:
        statement = statement.where(UsagePeriod.project_id == project)
    return statement


def _select_current(end: int, project: str | None) -> Select[*tuple[Any, ...]]:
    """Return a SELECT of the periods that have not ended."""
    statement: Select[*tuple[Any, ...]] = select(
        Arq.project_id,
        Arq.resource_class,
        Arq.device_profile_name,
        Arq.bound_at,
        _literal(end),
    ).where(_USED, Arq.bound_at < end)
    if project is not None:
        statement = statement.where(Arq.project_id == project)
    return statement


def delete_old_periods(session: Session, seconds: int) -> int:
    """Delete periods that ended over ``seconds`` ago; return their number."""
    is_old = UsagePeriod.ended_at < now_ms() - seconds * 1000
    return change(session, delete(UsagePeriod).where(is_old))


# --- ARQs of earlier releases ---

_INCOMPLETE: Final = or_(
    Arq.resource_class.is_(None),
    and_(Arq.bound_at.is_(None), Arq.state.in_(DEVICE_IN_USE_STATES)),
)
_BOUND_SINCE: Final = (
    select(func.max(ArqEvent.at))
    .where(ArqEvent.arq_uuid == Arq.uuid, ArqEvent.step == State.BOUND)
    .correlate(Arq)
    .scalar_subquery()
)


def has_incomplete_arqs(session: Session) -> bool:
    """Return True if an ARQ lacks its resource class or the start of its use."""
    return session.scalar(select(Arq.id).where(_INCOMPLETE).limit(1)) is not None


def complete_arqs(session: Session, limit: int) -> int:
    """Store resource class and start of use of ARQs that lack them.

    :param limit: number of ARQs
    :returns: the number of ARQs
    """
    rows = session.execute(
        select(
            Arq.id,
            Arq.state,
            Arq.device_profile_group,
            Arq.created_at,
            Arq.bound_at,
            Deployable.resource_class,
            _BOUND_SINCE.label('bound_since'),
        )
        .outerjoin(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
        .outerjoin(Deployable, Deployable.id == AttachHandle.deployable_id)
        .where(_INCOMPLETE)
        .order_by(Arq.id)
        .limit(limit)
        .with_for_update(of=Arq)
    ).all()
    if not rows:
        return 0
    classes = {row.id: _find_class(row) for row in rows}
    statement = update(Arq).where(Arq.id.in_(classes))
    columns: dict[str, Any] = {'resource_class': value_by_row(Arq.id, classes)}
    starts = _find_starts(rows)
    columns['bound_at'] = value_by_row(Arq.id, starts) if starts else Arq.bound_at
    change(session, statement.values(**columns, updated_at=Arq.updated_at))
    return len(rows)


# Any: the columns of the statement above.
def _find_class(row: Any) -> str:
    """Return the class of the unit of an ARQ; empty: a companion has none."""
    if row.resource_class is not None:
        return str(row.resource_class)
    if row.state in DEVICE_IN_USE_STATES:
        return ''
    group: Mapping[str, str] = row.device_profile_group
    return next(iter(Group.parse(group).requirements.resource_classes), '')


def _find_starts(rows: Sequence[Any]) -> dict[int, int | None]:
    """Return the start of use by id; empty: no ARQ of the rows is in use."""
    starts: dict[int, int | None] = {}
    for row in rows:
        is_used = row.state in DEVICE_IN_USE_STATES
        since: datetime = row.bound_since or row.created_at
        missing = int(since.timestamp() * 1000) if is_used else None
        starts[row.id] = missing if row.bound_at is None else row.bound_at
    return starts if any(starts.values()) else {}
