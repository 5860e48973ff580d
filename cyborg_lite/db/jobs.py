# SPDX-License-Identifier: Apache-2.0
"""The job table: adding, taking, fencing and ending jobs.

Whoever runs a job holds a lease on its row. Each statement that ends or changes the
job names the owner and the number of that lease, so that a runner that was slow to
notice its loss changes nothing: it gets ``JobLost``, and its transaction goes.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.clock import now_ms
from cyborg_lite.db.tables import Job as Row
from cyborg_lite.exceptions import JobLost
from cyborg_lite.model.jobs import Job, JobCount, JobState, Kind, NewJob, Owner

_LONGEST_ERROR: Final = 1000

CANCELLED: Final = 0
"""The deadline of what an operator cancelled: it is past by every clock."""


def add(session: Session, new: NewJob) -> None:
    """Write a job for whoever is free; one with a key is written once.

    If a job with that kind and key waits already it will do; if one is running it
    runs once more when it ends. Either way it does all that the wider of the two asks.
    """
    values = _values(new)
    if new.key is None:
        session.execute(insert(Row).values(**values))
    else:
        changes: dict[str, Any] = {'touched': Row.touched + 1}  # SQL, or JSON
        if new.widens:
            changes['payload'] = values['payload']
        _add_or_touch(session, values, changes)


def add_owned(session: Session, new: NewJob, owner: Owner) -> Job:
    """Write a job that this process runs at once; it has no key."""
    values = _values(new) | {
        'state': JobState.RUNNING,
        'owner': owner.name,
        'lease': 1,
        'lease_until': now_ms() + owner.lease_ms,
        'attempts': 1,
    }
    session.execute(insert(Row).values(**values))
    return Job(
        uuid=values['uuid'],
        kind=new.kind,
        payload=new.payload,
        owner=owner.name,
        lease=1,
        awaited=new.limit_ms is not None,
        request_id=new.request_id,
    )


def _values(new: NewJob) -> dict[str, Any]:
    """The columns of a new row; times are SQL, by the clock of the database."""
    return {
        'uuid': str(uuid4()),
        'kind': new.kind,
        'key': new.key,
        'payload': dict(new.payload),
        'state': JobState.WAITING,
        'run_after': now_ms(),
        'deadline': None if new.limit_ms is None else now_ms() + new.limit_ms,
        'created_at': now_ms(),
        'request_id': new.request_id,
    }


def _add_or_touch(
    session: Session, values: dict[str, Any], changes: dict[str, Any]
) -> None:
    # One statement on each database: reading first would leave a gap in which the
    # job that is there ends, and the new call for it is lost.
    name = session.get_bind().dialect.name
    if name in ('mysql', 'mariadb'):
        mine = mysql.insert(Row).values(**values)
        session.execute(mine.on_duplicate_key_update(**changes))
        return
    theirs = (
        (postgresql if name == 'postgresql' else sqlite).insert(Row).values(**values)
    )
    session.execute(
        theirs.on_conflict_do_update(index_elements=[Row.kind, Row.key], set_=changes)
    )


def take(
    session: Session, owner: Owner, limit: int, kinds: Collection[str] = tuple(Kind)
) -> tuple[Job, ...]:
    """Lease at most ``limit`` jobs that are due, or whose runner has gone silent.

    Of the ``kinds`` alone: others belong to conductors of another release.
    """
    ours = Row.kind.in_(kinds)
    due = and_(Row.state == JobState.WAITING, Row.run_after <= now_ms(), ours)
    silent = and_(Row.state == JobState.RUNNING, Row.lease_until < now_ms(), ours)
    # Two selects, because an OR would defeat both indexes.
    ids = _lock(session, due, Row.run_after, limit)
    if len(ids) < limit:
        ids += _lock(session, silent, Row.lease_until, limit - len(ids))
    if not ids:
        return ()
    change(
        session,
        update(Row)
        .where(Row.id.in_(ids))
        .values(
            state=JobState.RUNNING,
            owner=owner.name,
            lease=Row.lease + 1,
            lease_until=now_ms() + owner.lease_ms,
            attempts=Row.attempts + 1,
        ),
    )
    late = case((Row.deadline < now_ms(), True), else_=False).label('late')
    age = (now_ms() - Row.created_at).label('age')
    rows = session.execute(
        select(Row, late, age).where(Row.id.in_(ids)).order_by(Row.id)
    )
    return tuple(_job(row, bool(expired), age) for row, expired, age in rows)


def _lock(
    session: Session, which: ColumnElement[bool], order: Any, limit: int
) -> list[int]:
    # `order` is any column; the library's type for that is not public.
    wanted = select(Row.id).where(which).order_by(order).limit(limit)
    return list(session.scalars(wanted.with_for_update(skip_locked=True)))


def _job(row: Row, expired: bool, age_ms: int) -> Job:
    return Job(
        uuid=row.uuid,
        kind=row.kind,
        payload=row.payload,
        owner=row.owner or '',
        lease=row.lease,
        attempts=row.attempts,
        touched=row.touched,
        step=row.step,
        awaited=row.deadline is not None,
        expired=expired,
        cancelled=row.deadline == CANCELLED,
        age=age_ms / 1000,
        request_id=row.request_id,
    )


def renew(session: Session, owner: Owner, uuids: Sequence[str]) -> None:
    """Keep the leases of the jobs in hand, but for those whose deadline has passed.

    Whatever their runner waits for, they are taken from it and wound up.
    """
    in_time = or_(Row.deadline.is_(None), Row.deadline > now_ms())
    change(
        session,
        update(Row)
        .where(_in_hand(owner, uuids), in_time)
        .values(lease_until=now_ms() + owner.lease_ms),
    )


def _in_hand(owner: Owner, uuids: Sequence[str]) -> ColumnElement[bool]:
    return and_(
        Row.uuid.in_(uuids), Row.owner == owner.name, Row.state == JobState.RUNNING
    )


def _held(job: Job) -> ColumnElement[bool]:
    """The fence: true only while this very lease lasts."""
    return and_(
        Row.uuid == job.uuid,
        Row.owner == job.owner,
        Row.lease == job.lease,
        Row.state == JobState.RUNNING,
    )


def _change(session: Session, job: Job, **values: Any) -> None:
    """Change the row under the fence; ``values`` are columns of any type.

    :raises JobLost: the lease is not ours any more
    """
    changed = update(Row).where(_held(job)).values(**values)
    if change(session, changed) != 1:
        raise JobLost(job=job.uuid)


def finish(session: Session, job: Job) -> None:
    """End the job; it waits again if it was called for meanwhile.

    :raises JobLost: the lease is not ours any more
    """
    gone = delete(Row).where(_held(job), Row.touched == job.touched)
    if change(session, gone) != 1:
        _change(
            session,
            job,
            state=JobState.WAITING,
            owner=None,
            lease_until=None,
            run_after=now_ms(),
            attempts=0,
            step='',
            deadline=None,
        )


def become(session: Session, job: Job, new: NewJob) -> Job:
    """End the job and go on with another in the same row, under the same lease.

    One statement instead of two, and no moment at which neither is there.

    :raises JobLost: the lease is not ours any more
    """
    limit = None if new.limit_ms is None else now_ms() + new.limit_ms
    _change(
        session,
        job,
        kind=new.kind,
        payload=dict(new.payload),
        deadline=limit,
        attempts=1,
        step='',
        last_error='',
    )
    return Job(
        uuid=job.uuid,
        kind=new.kind,
        payload=new.payload,
        owner=job.owner,
        lease=job.lease,
        touched=job.touched,
        awaited=new.limit_ms is not None,
        request_id=job.request_id,
    )


def reach(session: Session, job: Job, step: str) -> None:
    """Record how far the job came, for the runner after us.

    :raises JobLost: the lease is not ours any more
    """
    _change(session, job, step=step)


def put_off(session: Session, job: Job, delay_ms: int, error: str) -> bool:
    """Let it run again later; False: that would be after its deadline.

    :raises JobLost: the lease is not ours any more
    """
    in_time = or_(Row.deadline.is_(None), now_ms() + delay_ms < Row.deadline)
    waiting = (
        update(Row)
        .where(_held(job), in_time)
        .values(
            state=JobState.WAITING,
            owner=None,
            lease_until=None,
            run_after=now_ms() + delay_ms,
            last_error=error[:_LONGEST_ERROR],
        )
    )
    if change(session, waiting) == 1:
        return True
    _change(session, job, last_error=error[:_LONGEST_ERROR])
    return False


def give_up(session: Session, job: Job, error: str) -> None:
    """Keep the job for the operator; another with its key may be written.

    :raises JobLost: the lease is not ours any more
    """
    _change(
        session,
        job,
        state=JobState.FAILED,
        key=None,
        owner=None,
        lease_until=None,
        last_error=error[:_LONGEST_ERROR],
    )


def hand_back(session: Session, owner: Owner, uuids: Sequence[str]) -> None:
    """On the way out: let others take at once what was not begun."""
    change(
        session,
        update(Row)
        .where(_in_hand(owner, uuids))
        .values(
            state=JobState.WAITING,
            owner=None,
            lease_until=None,
            attempts=Row.attempts - 1,
            run_after=now_ms(),
        ),
    )


def count(session: Session) -> tuple[JobCount, ...]:
    """How many jobs of each kind are in each state."""
    rows = session.execute(
        select(Row.kind, Row.state, func.count())
        .group_by(Row.kind, Row.state)
        .order_by(Row.kind, Row.state)
    )
    return tuple(
        JobCount(kind=kind, state=JobState(state), count=number)
        for kind, state, number in rows
    )
