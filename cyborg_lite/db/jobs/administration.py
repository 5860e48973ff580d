# SPDX-License-Identifier: Apache-2.0
"""Administration of jobs and operations: list, retry and cancel.

Nothing here ends a running job. A conductor ends a cancelled job, because the handler
of the job type knows which resources it must release.
"""

from collections.abc import Collection as Strings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NoReturn

from sqlalchemy import ColumnElement, and_, case, delete, func, literal, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import operations
from cyborg_lite.db.jobs.queue import CANCELLED
from cyborg_lite.errors.jobs import OperationRefused
from cyborg_lite.model.jobs import JobRecord, JobState, job_key
from cyborg_lite.model.operations import OperationKind, OperationState

# Failed binds have no row, and a client must decide anew.
_RESTARTS: Final[Mapping[str, str]] = {
    OperationKind.BIND: 'Nova has given up the server: start or create it again.',
}


def _seconds(milliseconds: int) -> float:
    return milliseconds / 1000


def _read_deadline(deadline: int | None, current: int) -> float | None:
    has_deadline = deadline not in (None, CANCELLED)
    return _seconds((deadline or 0) - current) if has_deadline else None


_JOB: Final = Record(
    JobRecord,
    Row,
    type=Row.kind,
    age=From(_seconds, now_ms() - Row.created_at),
    due_in=From(_seconds, Row.run_after - now_ms()),
    deadline_in=From(_read_deadline, Row.deadline, now_ms()),
    cancelled=From(lambda deadline: deadline == CANCELLED, Row.deadline),
)


def list_jobs(
    session: Session, kinds: Strings[str] = (), states: Strings[str] = ()
) -> tuple[JobRecord, ...]:
    """Return jobs by type and state, oldest first; an empty filter matches all."""
    statement = _JOB.select().order_by(Row.id)
    if kinds:
        statement = statement.where(Row.kind.in_(kinds))
    if states:
        statement = statement.where(Row.state.in_(states))
    return _JOB.list(session, statement)


def list_longest_waits(session: Session) -> dict[str, float]:
    """Return the seconds for which the oldest job has waited, by job type.

    A due job waits since it was due. A job whose last attempt has failed waits since it
    was created, also between two attempts.
    """
    has_error = Row.last_error != ''
    waiting = Row.state == JobState.WAITING, has_error | (Row.run_after <= now_ms())
    start = case((has_error, Row.created_at), else_=Row.run_after)
    oldest = select(Row.kind, now_ms() - func.min(start)).where(*waiting)
    return {
        kind: float(waited) / 1000
        for kind, waited in session.execute(oldest.group_by(Row.kind))
    }


def retry_operation(session: Session, uuid: str) -> None:
    """Run the waiting and failed jobs of an operation now.

    :raises OperationRefused: a job is running or cancelled, a newer job does its work,
        or there is none
    """
    are_retried = False
    for job in _list_jobs_of(session, uuid, _RESTARTS):
        if (newer := _find_newer(session, job)) is not None:
            raise OperationRefused(uuid=uuid, reason=f'{newer} does its work now.')
        are_retried |= retry_job(session, job)
    if not are_retried:  # the jobs have ended since they were listed
        raise OperationRefused(uuid=uuid, reason='it has ended.')


def cancel_operation(session: Session, uuid: str) -> None:
    """Have a conductor end the jobs of an operation as if their deadline had passed.

    :raises OperationRefused: as ``cancel_job``, or the operation has no job
    """
    for job in _list_jobs_of(session, uuid):
        cancel_job(session, job)


def _list_jobs_of(
    session: Session, operation: str, advice: Mapping[str, str] = MappingProxyType({})
) -> Sequence[str]:
    """Return the uuids of the jobs of an operation.

    :param advice: what to do instead if an operation of a kind has failed
    """
    jobs = operations.list_jobs(session, operation)
    if not jobs:
        record = operations.read_operation(session, operation)
        has_failed = record.state is not OperationState.SUCCEEDED
        hint = advice.get(record.kind, '') if has_failed else ''
        raise OperationRefused(uuid=operation, reason=f'it has ended. {hint}'.strip())
    return jobs


def _find_newer(session: Session, uuid: str) -> str | None:
    """Return what has the key of a failed job now, or None."""
    is_failed = and_(Row.uuid == uuid, Row.state == JobState.FAILED)
    row = session.scalar(select(Row).where(is_failed))
    key = None if row is None else job_key(row.kind, row.payload)
    if row is None or key is None:
        return None
    same_key = select(Row.uuid).where(Row.kind == row.kind, Row.key == key)
    newer = session.scalar(same_key)
    if newer is None:
        return None
    uuids = operations.list_by_job(session, [newer])[newer]
    return f'operation {uuids[0]}' if uuids else 'a job of the service'


def retry_job(session: Session, uuid: str) -> bool:
    """Run a waiting or failed job now. A failed job gets its full time limit again.

    :returns: False if the job does not exist, or was deleted, because a newer job has
        its key
    :raises OperationRefused: the job is running, or was cancelled
    """
    row = _lock_job(session, uuid)
    if row is None:
        return False
    is_job = Row.uuid == uuid
    if row.state == JobState.RUNNING:
        _refuse(session, row, f'{row.owner} is running it.')
    if row.state == JobState.WAITING:
        if row.deadline == CANCELLED:
            _refuse(session, row, 'it is cancelled.')
        change(session, update(Row).where(is_job).values(run_after=now_ms()))
        return True
    key = job_key(row.kind, row.payload)
    same_key = select(Row.id).where(Row.kind == row.kind, Row.key == key)
    if key is not None and session.scalar(same_key) is not None:
        change(session, delete(Row).where(is_job))
        return False
    values = {
        'state': JobState.WAITING,
        'key': key,
        'attempts': 0,
        'run_after': now_ms(),
        'deadline': _renewed_deadline(row.deadline, row.created_at),
        'created_at': now_ms(),
    }
    of_job = operations.list_by_job(session, [uuid])[uuid]
    operations.reopen_operations(session, of_job)
    change(session, update(Row).where(is_job).values(**values))
    return True


def _renewed_deadline(deadline: int | None, created_at: int) -> object:
    """Return the column value: the same time limit from now.

    A cancelled job gets no deadline, because its time limit is not stored any more.
    """
    if deadline is None or deadline == CANCELLED:
        return None
    return now_ms() + (deadline - created_at)


def cancel_job(session: Session, uuid: str) -> None:
    """Have a conductor end a job as if its deadline had passed.

    A waiting job is ended at once. A running job is ended unless it succeeds. A failed
    job is deleted. A job that does not exist needs nothing.

    :raises OperationRefused: the job is a failed release, which records an unclean
        device
    """
    row = _lock_job(session, uuid)
    is_job = Row.uuid == uuid
    if row is None:
        return
    if row.state != JobState.FAILED:
        due = case((Row.state == JobState.WAITING, now_ms()), else_=Row.run_after)
        cancelled = {'deadline': literal(CANCELLED), 'run_after': due}
        change(session, update(Row).where(is_job).values(**cancelled))
        return
    if row.kind == OperationKind.RELEASE:
        _refuse(session, row, 'it has failed and the device is not clean. Retry it.')
    change(session, delete(Row).where(is_job))


def _lock_job(session: Session, uuid: str) -> Row | None:
    return session.scalar(select(Row).where(Row.uuid == uuid).with_for_update())


def _refuse(session: Session, row: Row, reason: str) -> NoReturn:
    uuids = operations.list_by_job(session, [row.uuid])[row.uuid]
    raise OperationRefused(uuid=next(iter(uuids), row.uuid), reason=reason)


def delete_jobs(session: Session, jobs: ColumnElement[bool], reason: str) -> int:
    """Delete jobs whose object is gone, and cancel their operations.

    :param jobs: SQL that is true for the jobs
    :returns: number of deleted jobs
    """
    unfinished = select(Row.uuid).where(jobs, Row.state != JobState.FAILED)
    by_job = operations.list_by_job(session, session.scalars(unfinished).all())
    for uuids in by_job.values():
        operations.end_job(session, uuids, reason, OperationState.CANCELLED)
    return change(session, delete(Row).where(jobs))
