# SPDX-License-Identifier: Apache-2.0
"""Job administration: list, retry and cancel jobs.

Nothing here ends a running job. A conductor ends a cancelled job, because the handler
of the job type knows which resources it must release.
"""

from collections.abc import Collection as Strings
from typing import Final

from sqlalchemy import case, delete, func, literal, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.query import (
    Collection,
    list_page,
    name_columns,
)
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.jobs.queue import CANCELLED
from cyborg_lite.errors.jobs import JobNotFound, JobRefused
from cyborg_lite.model.jobs import JobRecord, JobState, JobType, NewJob, job_key
from cyborg_lite.model.queries import Query


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
    return tuple(map(_JOB.read, session.execute(statement)))


_JOBS: Final = Collection(
    Row,
    filters=name_columns(Row, 'uuid', 'kind', 'state'),
    sorts=name_columns(Row, 'uuid', 'kind', 'state'),
)


def list_job_page(session: Session, query: Query) -> tuple[JobRecord, ...]:
    """Return the jobs that match the query, in one SELECT.

    :raises InvalidInput: an unknown filter, sort key or marker
    """
    return list_page(session, _JOB.select(), query, _JOBS, _JOB.read)


def request_job(session: Session, new: NewJob) -> JobRecord:
    """Write a job that has a key, and return the stored job with this key."""
    queue.add_job(session, new)
    statement = _JOB.select().where(Row.kind == new.type, Row.key == new.key)
    return _JOB.read(session.execute(statement).one())


def list_longest_waits(session: Session) -> dict[str, float]:
    """Return the seconds for which the oldest due job has waited, by job type."""
    waiting = Row.state == JobState.WAITING, Row.run_after <= now_ms()
    oldest = select(Row.kind, now_ms() - func.min(Row.run_after)).where(*waiting)
    return {
        kind: float(waited) / 1000
        for kind, waited in session.execute(oldest.group_by(Row.kind))
    }


def retry_job(session: Session, uuid: str) -> bool:
    """Run a waiting or failed job now. A failed job gets its full time limit again.

    :returns: False if the job was deleted, because a newer job has its key
    :raises JobNotFound: the job does not exist
    :raises JobRefused: the job is running, or was cancelled
    """
    row = _lock_job(session, uuid)
    is_job = Row.uuid == uuid
    if row.state == JobState.RUNNING:
        raise JobRefused(job=uuid, reason=f'{row.owner} is running the job.')
    if row.state == JobState.WAITING:
        if row.deadline == CANCELLED:
            raise JobRefused(job=uuid, reason='the job is cancelled.')
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
    job is deleted.

    :raises JobNotFound: the job does not exist
    :raises JobRefused: the job is a failed release, which records an unclean device
    """
    row = _lock_job(session, uuid)
    is_job = Row.uuid == uuid
    if row.state != JobState.FAILED:
        due = case((Row.state == JobState.WAITING, now_ms()), else_=Row.run_after)
        cancelled = {'deadline': literal(CANCELLED), 'run_after': due}
        change(session, update(Row).where(is_job).values(**cancelled))
        return
    if row.kind == JobType.RELEASE:
        reason = 'the release has failed and the device is not clean. Retry the job.'
        raise JobRefused(job=uuid, reason=reason)
    change(session, delete(Row).where(is_job))


def _lock_job(session: Session, uuid: str) -> Row:
    """Lock and return the row of a job.

    :raises JobNotFound: the job does not exist
    """
    row = session.scalar(select(Row).where(Row.uuid == uuid).with_for_update())
    if row is None:
        raise JobNotFound(uuid=uuid)
    return row
