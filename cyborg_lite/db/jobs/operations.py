# SPDX-License-Identifier: Apache-2.0
"""Operations: what a client reads of the jobs that its request has caused.

The table ``job_operations`` relates jobs and operations. The functions of ``queue``
that add, lease, end or postpone a job change its operations in the same transaction.
An operation ends with its last job; it has failed if one of them has.
"""

from collections import defaultdict
from collections.abc import Collection as Uuids
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    true,
)
from sqlalchemy import update as _update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.query import Collection, list_page, name_columns
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Job, JobOperation, now
from cyborg_lite.db.core.tables import Operation as Row
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.jobs import OperationNotFound
from cyborg_lite.errors.registry import find_code
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.operations import (
    UNFINISHED,
    NewOperation,
    Operation,
    OperationState,
)
from cyborg_lite.model.queries import SORT_KEYS, Query

Failure = CyborgError | str
"""Why a job has failed: an error, or a text for which there is no code."""

MAX_RECORDS: Final = 1000
"""Operations that one transaction deletes at most."""

_UNFINISHED: Final = Row.state.in_(UNFINISHED)
_ADD: Final = Upsert(
    Row,
    [Row.uuid],
    also={'jobs': Row.jobs + 1, 'pending': Row.pending + 1},
    # As the times of the history of ARQs, which has the steps of binds.
    computed={'created_at': now_utc()},
)
_NEW: Final = Record(NewOperation, Row)
_IS_FIRST: Final = Row.pending == 0
# In this order for MySQL, as below.
_AGAIN: Final = (
    _update(Row)
    .where(Row.uuid == bindparam('operation'))
    .ordered_values(
        (Row.state, bindparam('state_now')),
        (Row.outcome, case((_IS_FIRST, OperationState.SUCCEEDED), else_=Row.outcome)),
        (Row.progress, case((_IS_FIRST, 0), else_=Row.progress)),
        (Row.ended_at, None),
        (Row.jobs, case((_IS_FIRST, 1), else_=Row.jobs + 1)),
        (Row.pending, Row.pending + 1),
    )
)
_IS_WORK: Final = and_(
    JobOperation.job_uuid == Job.uuid, JobOperation.job_kind == Job.kind
)
_CHANGE: Final = _update(Row).where(
    Row.uuid.in_(bindparam('uuids', expanding=True)), _UNFINISHED
)
_START: Final = _CHANGE.values(
    state=OperationState.RUNNING, started_at=func.coalesce(Row.started_at, now_utc())
)
_IS_LAST: Final = Row.pending <= 1
# MySQL evaluates the assignments in their order, each with the results of the others.
_SUCCEED: Final = _CHANGE.ordered_values(
    (Row.state, case((_IS_LAST, Row.outcome), else_=Row.state)),
    (Row.ended_at, case((_IS_LAST, now_utc()), else_=Row.ended_at)),
    (
        Row.reason,
        case((Row.outcome == OperationState.SUCCEEDED, ''), else_=Row.reason),
    ),
    (
        Row.error_code,
        case((Row.outcome != OperationState.SUCCEEDED, Row.error_code)),
    ),
    (Row.pending, Row.pending - 1),
)
_FAIL: Final = _CHANGE.ordered_values(
    (Row.state, case((_IS_LAST, bindparam('outcome_now')), else_=Row.state)),
    (Row.ended_at, case((_IS_LAST, now_utc()), else_=Row.ended_at)),
    (Row.reason, bindparam('reason_now')),
    (Row.error_code, bindparam('code_now')),
    (Row.outcome, bindparam('outcome_now')),
    (Row.pending, Row.pending - 1),
)


def add(
    session: Session, new: NewOperation, state: OperationState = OperationState.WAITING
) -> None:
    """Store an operation with one job, or count a further job of the operation.

    :raises OperationNotFound: the operation to retry was purged
    """
    if new.is_retry:
        parameters = {'operation': new.uuid, 'state_now': state}
        if change(session, _AGAIN, parameters) != 1:
            raise OperationNotFound(uuid=new.uuid)
        return
    values = {
        **_NEW.write(new),
        'parameters': dict(new.parameters),
        'state': state,
        'started_at': now() if state is OperationState.RUNNING else None,
        'jobs': 1,
        'pending': 1,
    }
    _ADD.run(session, values)


def add_job(session: Session, uuid: str, is_job: ColumnElement[bool]) -> None:
    """Store that a job works for an operation.

    :param is_job: SQL that is true for the job, which this transaction has locked
    """
    columns = ['operation_uuid', 'job_uuid', 'job_kind']
    job = select(literal(uuid), Job.uuid, Job.kind).where(is_job)
    change(session, insert(JobOperation).from_select(columns, job))


def list_by_job(session: Session, jobs: Uuids[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the uuids of the operations of jobs, by uuid of the job; maybe empty."""
    by_job: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    if not jobs:
        return by_job
    statement = select(Job.uuid, JobOperation.operation_uuid).where(
        _IS_WORK, Job.uuid.in_(jobs)
    )
    for job, operation in session.execute(statement.order_by(JobOperation.id)):
        by_job[job] += (operation,)
    return by_job


def list_jobs(session: Session, uuid: str) -> Sequence[str]:
    """Return the uuids of the jobs of an operation that are unfinished or failed."""
    statement = select(Job.uuid).where(JobOperation.operation_uuid == uuid, _IS_WORK)
    return session.scalars(statement.order_by(Job.id)).all()


def start(session: Session, uuids: Iterable[str]) -> None:
    """Store that a worker runs a job of the operations."""
    if listed := list(uuids):
        change(session, _START, {'uuids': listed})


def end_job(
    session: Session,
    uuids: Uuids[str],
    failure: Failure | None = None,
    outcome: OperationState = OperationState.FAILED,
) -> None:
    """Store the end of a job of the operations; the last one ends them.

    :param failure: None: the job has succeeded
    :param outcome: of an operation whose job has not succeeded
    """
    if not uuids:
        return
    if failure is None:
        change(session, _SUCCEED, {'uuids': list(uuids)})
        return
    reason, code = _describe(failure)
    values = {'reason_now': reason, 'code_now': code, 'outcome_now': outcome}
    change(session, _FAIL, {'uuids': list(uuids), **values})


def note_delay(session: Session, uuids: Uuids[str], failure: Failure) -> None:
    """Store why a job of the operations waits."""
    if uuids:
        reason, code = _describe(failure)
        waiting = {'state': OperationState.WAITING, 'reason': reason}
        values = {'uuids': list(uuids), **waiting, 'error_code': code}
        change(session, _CHANGE, values)


def reopen_operations(session: Session, uuids: Uuids[str]) -> None:
    """Store that a failed job of the operations runs again."""
    if uuids:
        values = {
            'state': OperationState.WAITING,
            'outcome': OperationState.SUCCEEDED,
            'pending': Row.pending + 1,
            'ended_at': None,
        }
        change(session, _update(Row).where(Row.uuid.in_(uuids)).values(**values))


def record_step(
    session: Session, uuids: Uuids[str], name: str, progress: int = 0, reason: str = ''
) -> None:
    """Add a step to the operations of a job, unless it is their last one.

    :param progress: in percent
    :param reason: why the job waits; empty: it does not
    """
    step = {'name': name, 'at': now().isoformat(), 'reason': reason[:REASON_MAX_LENGTH]}
    locked = select(Row.uuid, Row.steps).where(Row.uuid.in_(uuids)).order_by(Row.id)
    for row in session.execute(locked.with_for_update()).all() if uuids else ():
        last = row.steps[-1] if row.steps else {}
        if (last.get('name'), last.get('reason')) != (name, step['reason']):
            values = {'steps': [*row.steps, step], 'progress': progress}
            is_row = Row.uuid == row.uuid
            change(session, _update(Row).where(is_row).values(**values))


# Any: JSON.
def record_result(session: Session, uuids: Uuids[str], result: Any) -> None:
    """Store what the operations have found or made."""
    if uuids:
        is_row = Row.uuid.in_(uuids)
        change(session, _update(Row).where(is_row).values(result=result))


def _describe(failure: Failure) -> tuple[str, str | None]:
    code = find_code(type(failure)) if isinstance(failure, CyborgError) else None
    return str(failure)[:REASON_MAX_LENGTH], code


# --- what clients read ---


def _read_progress(state: str, progress: int, jobs: int, pending: int) -> int:
    """Return the percentage of the steps, or of the jobs."""
    if state == OperationState.SUCCEEDED:
        return 100
    return max(progress, 100 * (jobs - pending) // max(jobs, 1) if pending else 0)


_OPERATION: Final = Record(
    Operation,
    Row,
    progress=From(_read_progress, Row.state, Row.progress, Row.jobs, Row.pending),
)
_OPERATIONS: Final = Collection(
    Row,
    filters=name_columns(
        Row, 'uuid', 'kind', 'state', 'project_id', subject=Row.subject_id
    ),
    sorts=name_columns(Row, *SORT_KEYS['operations']),
)


def list_operations(
    session: Session, query: Query, project_id: str | None
) -> tuple[Operation, ...]:
    """Return the operations that match the query, in one SELECT.

    :param project_id: that must have requested the operations; None: any
    """
    visible = true() if project_id is None else Row.project_id == project_id

    collection = replace(_OPERATIONS, visible=visible)
    return list_page(session, _OPERATION.select(), query, collection, _OPERATION.read)


_NUMBER_OF_JOBS: Final = (
    select(func.count())
    .select_from(JobOperation)
    .join(Job, _IS_WORK)
    .where(JobOperation.operation_uuid == Row.uuid)
    .correlate(Row)
    .scalar_subquery()
)


def list_unfinished(
    session: Session, kind: str, subjects: Sequence[str], *, jobless: bool = False
) -> Sequence[str]:
    """Return the uuids of the unfinished operations on subjects, in one SELECT.

    :param jobless: only those that wait for a job which is not written yet
    """
    is_same = and_(Row.kind == kind, Row.subject_id.in_(subjects), _UNFINISHED)
    is_selected = Row.pending > _NUMBER_OF_JOBS if jobless else true()
    statement = select(Row.uuid).where(is_same, is_selected)
    return session.scalars(statement.order_by(Row.id)).all()


def read_operation(session: Session, uuid: str) -> Operation:
    """Return an operation that is stored."""
    statement = _OPERATION.select().where(Row.uuid == uuid)
    return _OPERATION.read(session.execute(statement).one())


def delete_old_operations(session: Session, before: datetime) -> int:
    """Delete operations that ended before a time, at most ``MAX_RECORDS``.

    An operation with a failed job stays, so that clients can retry or cancel it.

    :returns: number of deleted rows
    """
    old = select(Row.uuid).where(Row.ended_at < before, _NUMBER_OF_JOBS == 0)
    uuids = session.scalars(old.limit(MAX_RECORDS)).all()
    if not uuids:
        return 0
    change(session, delete(JobOperation).where(JobOperation.operation_uuid.in_(uuids)))
    return change(session, delete(Row).where(Row.uuid.in_(uuids)))
