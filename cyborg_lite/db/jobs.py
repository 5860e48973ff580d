# SPDX-License-Identifier: Apache-2.0
"""The job table: adding, taking, fencing and ending jobs.

Whoever runs a job holds a lease on its row. Each statement that ends or changes the
job names the owner and the number of that lease, so that a runner that was slow to
notice its loss changes nothing: it gets ``JobLost``, and its transaction goes.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.change import Values, change
from cyborg_lite.db.clock import now_ms
from cyborg_lite.db.tables import Job as Row
from cyborg_lite.db.upsert import Upsert
from cyborg_lite.exceptions import JobLost
from cyborg_lite.model.jobs import Job, JobCount, JobState, Kind, NewJob, Owner

_LONGEST_ERROR: Final = 1000

_DEADLINE: Final = now_ms() + bindparam('limit_ms', type_=BigInteger)
_TIMES: Final = {'run_after': now_ms(), 'created_at': now_ms(), 'deadline': _DEADLINE}
_ADD: Final = insert(Row).values(**_TIMES)
_KEYS: Final = [Row.kind, Row.key]
_TOUCH: Final = {'touched': Row.touched + 1}
_ADD_OR_TOUCH: Final = Upsert(Row, _KEYS, also=_TOUCH, computed=_TIMES)
_ADD_OR_WIDEN: Final = Upsert(Row, _KEYS, ['payload'], also=_TOUCH, computed=_TIMES)
_ADD_OWNED: Final = _ADD.values(
    lease_until=now_ms() + bindparam('lease_ms', type_=BigInteger)
)
_SOME: Final = (
    select(Row.id)
    .where(Row.kind.in_(bindparam('kinds')))
    .limit(bindparam('number'))
    .with_for_update(skip_locked=True)
)
_DUE: Final = _SOME.where(
    Row.state == JobState.WAITING, Row.run_after <= now_ms()
).order_by(Row.run_after)
_ABANDONED: Final = _SOME.where(
    Row.state == JobState.RUNNING, Row.lease_until < now_ms()
).order_by(Row.lease_until)
# The fence, see ``_lease``.
_HELD: Final = and_(
    Row.uuid == bindparam('held_uuid'),
    Row.owner == bindparam('held_by'),
    Row.lease == bindparam('held_lease'),
    Row.state == JobState.RUNNING,
)
_CHANGE: Final = update(Row).where(_HELD)
_WAIT: Final = _CHANGE.values(state=JobState.WAITING, owner=None, lease_until=None)
_AGAIN: Final = _WAIT.values(run_after=now_ms(), attempts=0, step='', deadline=None)
_BECOME: Final = _CHANGE.values(deadline=_DEADLINE)
_FINISH: Final = delete(Row).where(_HELD, Row.touched == bindparam('held_touched'))

CANCELLED: Final = 0
"""The deadline of what an operator cancelled: it is past by every clock."""


def add(session: Session, new: NewJob) -> None:
    """Write a job for whoever is free; one with a key is written once.

    If a job with that kind and key waits already it will do; if one is running it
    runs once more when it ends. Either way it does all that the wider of the two asks.
    """
    values = _values(new)
    if new.key is None:
        change(session, _ADD, values)
    else:
        # One statement on each database: reading first would leave a gap in which the
        # job that is there ends, and the new call for it is lost.
        (_ADD_OR_WIDEN if new.widens else _ADD_OR_TOUCH).run(session, values)


def add_owned(session: Session, new: NewJob, owner: Owner) -> Job:
    """Write a job that this process runs at once; it has no key."""
    values = _values(new) | {
        'state': JobState.RUNNING,
        'owner': owner.name,
        'lease': 1,
        'lease_ms': owner.lease_ms,
        'attempts': 1,
    }
    change(session, _ADD_OWNED, values)
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
    """Of ``_ADD``: a new row, whose times are by the clock of the database."""
    return {
        'uuid': str(uuid4()),
        'kind': new.kind,
        'key': new.key,
        'payload': dict(new.payload),
        'state': JobState.WAITING,
        'limit_ms': new.limit_ms,
        'request_id': new.request_id,
    }


def take(
    session: Session, owner: Owner, limit: int, kinds: Collection[str] = tuple(Kind)
) -> tuple[Job, ...]:
    """Lease at most ``limit`` jobs that are due, or whose runner has gone silent.

    Of the ``kinds`` alone: others belong to conductors of another release.
    """
    # Two selects, because an OR would defeat both indexes.
    ids = _locked(session, _DUE, kinds, limit)
    if len(ids) < limit:
        ids += _locked(session, _ABANDONED, kinds, limit - len(ids))
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


def _locked(
    session: Session, wanted: Select[int], kinds: Collection[str], number: int
) -> list[int]:
    return list(session.scalars(wanted, {'kinds': list(kinds), 'number': number}))


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


def _lease(job: Job) -> dict[str, Any]:
    """The parameters of ``_HELD``, which is true only while this very lease lasts."""
    return {'held_uuid': job.uuid, 'held_by': job.owner, 'held_lease': job.lease}


def _change(
    session: Session, job: Job, changed: Update, values: Values | None = None
) -> None:
    """Change the row under the fence.

    :raises JobLost: the lease is not ours any more
    """
    if change(session, changed, {**_lease(job), **(values or {})}) != 1:
        raise JobLost(job=job.uuid)


def finish(session: Session, job: Job) -> None:
    """End the job; it waits again if it was called for meanwhile.

    :raises JobLost: the lease is not ours any more
    """
    if change(session, _FINISH, {**_lease(job), 'held_touched': job.touched}) != 1:
        _change(session, job, _AGAIN)


def become(session: Session, job: Job, new: NewJob) -> Job:
    """End the job and go on with another in the same row, under the same lease.

    One statement instead of two, and no moment at which neither is there.

    :raises JobLost: the lease is not ours any more
    """
    values = {
        'kind': new.kind,
        'payload': dict(new.payload),
        'limit_ms': new.limit_ms,
        'attempts': 1,
        'step': '',
        'last_error': '',
    }
    _change(session, job, _BECOME, values)
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
    _change(session, job, _CHANGE, {'step': step})


def put_off(session: Session, job: Job, delay_ms: int, error: str) -> Job | None:
    """Let it run again later, and return None; the job, if it would be too late then.

    :raises JobLost: the lease is not ours any more
    """
    moment, why = now_ms() + delay_ms, {'last_error': error[:_LONGEST_ERROR]}
    in_time = or_(Row.deadline.is_(None), moment < Row.deadline)
    waiting = _WAIT.where(in_time).values(run_after=moment)
    if change(session, waiting, {**_lease(job), **why}) == 1:
        return None
    _change(session, job, _CHANGE, why)
    deadline = session.scalar(select(Row.deadline).where(Row.uuid == job.uuid))
    return replace(job, expired=True, cancelled=deadline == CANCELLED)


def give_up(session: Session, job: Job, error: str) -> None:
    """Keep the job for the operator; another with its key may be written.

    :raises JobLost: the lease is not ours any more
    """
    values = {
        'state': JobState.FAILED,
        'key': None,
        'owner': None,
        'lease_until': None,
        'last_error': error[:_LONGEST_ERROR],
    }
    _change(session, job, _CHANGE, values)


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
