# SPDX-License-Identifier: Apache-2.0
"""The job queue: add, lease, change and finish jobs.

A worker that runs a job holds a lease on its row. Each statement that changes the job
compares the owner and the lease number. A worker that has lost its lease therefore
changes nothing: it gets ``JobLost``, and its transaction is rolled back.

The payload of a job names the caller of the API request that caused it. Every conductor
that runs the job logs these ids and passes them to other services.

A function that changes a job raises ``JobLost`` if this process has lost its lease.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar
from uuid import uuid4

from oslo_context import context as oslo_context
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Update,
    and_,
    bindparam,
    case,
    delete,
    false,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.core.change import Upsert, Values, change
from cyborg_lite.db.core.clock import now_ms, read_now_ms
from cyborg_lite.db.core.incarnations import IS_QUARANTINED
from cyborg_lite.db.core.records import AnyRow, From, Record
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import operations
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.errors.jobs import InvalidJobPayload, JobLost
from cyborg_lite.model.devices.cleaning import CONDUCTOR_ACTOR
from cyborg_lite.model.jobs import (
    CALLER_FIELDS,
    CALLER_KEY,
    HELD_IN_QUARANTINE,
    CleanPayload,
    HostShares,
    Job,
    JobCount,
    JobPayload,
    JobState,
    NewJob,
    Owner,
    PlacementSyncPayload,
    ProviderRemovalPayload,
    ReleasePayload,
    job_key,
    name_subject,
)
from cyborg_lite.model.operations import NewOperation, OperationKind, OperationState

P = TypeVar('P', bound=JobPayload)

_ERROR_MAX_LENGTH: Final = 1000
_MAX_ADVANCED: Final = 1000  # jobs per call, because databases limit parameters
_MAX_SKEW_MS: Final = 10_000  # between the clocks of the servers of one database

_DEADLINE: Final = now_ms() + bindparam('limit_ms', type_=BigInteger)
_TIMES: Final = {'run_after': now_ms(), 'created_at': now_ms(), 'deadline': _DEADLINE}
_ADD: Final = insert(Row).values(**_TIMES)
_KEYS: Final = [Row.kind, Row.key]
_RERUN: Final = {'rerun_requested': Row.rerun_requested + 1}
# Any: the parameters have various types.
_RULES: Final[dict[str, Any]] = {'also': _RERUN, 'computed': _TIMES}
_ADD_OR_RERUN: Final = Upsert(Row, _KEYS, **_RULES)
_ADD_OR_WIDEN: Final = Upsert(Row, _KEYS, ['payload'], **_RULES)
# PyMySQL sends many rows in one statement only if all their values are parameters, and
# nothing else is one.
_ADD_MANY: Final = Upsert(
    Row, _KEYS, also={'rerun_requested': Row.rerun_requested + literal_column('1')}
)
_ADD_OWNED: Final = _ADD.values(
    lease_until=now_ms() + bindparam('lease_ms', type_=BigInteger)
)
CANCELLED: Final = 0
"""The deadline of a job that an operator has cancelled; it has always passed."""

# The locking SELECT reads all values of a job, so no other one is needed.
_JOB: Final = Record(
    Job,
    Row,
    type=Row.kind,
    # The values after the UPDATE that leases the job.
    lease=Row.lease + 1,
    attempts=Row.attempts + 1,
    awaited=Row.deadline.is_not(None),
    expired=case((Row.deadline < now_ms(), True), else_=False),
    abandoned=Row.state == JobState.RUNNING,
    cancelled=func.coalesce(Row.deadline == CANCELLED, false()),
    age=From(lambda milliseconds: milliseconds / 1000, now_ms() - Row.created_at),
)
_NEW_JOB: Final = Record(NewJob, Row, type=Row.kind)
_LOCK: Final = _JOB.select().with_for_update(skip_locked=True)
_LEASABLE: Final = _LOCK.where(
    Row.kind.in_(bindparam('kinds', expanding=True)),
    or_(
        Row.host.is_(None),
        Row.host.not_in(bindparam('full_hosts', expanding=True)),
        Row.deadline < now_ms(),  # the job only ends, and calls no host
    ),
    or_(
        ~IS_QUARANTINED,
        Row.kind.not_in(sorted(HELD_IN_QUARANTINE)),
        Row.deadline < now_ms(),
    ),
).limit(bindparam('number'))
_DUE: Final = _LEASABLE.where(
    Row.state == JobState.WAITING, Row.run_after <= now_ms()
).order_by(Row.run_after)
_ABANDONED: Final = _LEASABLE.where(
    Row.state == JobState.RUNNING, Row.lease_until < now_ms()
).order_by(Row.lease_until)
# The fence; for its parameters see ``_lease``.
_LEASED: Final = and_(
    Row.uuid == bindparam('leased_uuid'),
    Row.owner == bindparam('leased_by'),
    Row.lease == bindparam('lease_number'),
    Row.state == JobState.RUNNING,
)
_CHANGE: Final = update(Row).where(_LEASED)
_WAIT: Final = _CHANGE.values(state=JobState.WAITING, owner=None, lease_until=None)
_AGAIN: Final = _WAIT.values(run_after=now_ms(), attempts=0, step='', deadline=None)
_BECOME: Final = _CHANGE.values(deadline=_DEADLINE)
_FINISH: Final = delete(Row).where(
    _LEASED, Row.rerun_requested == bindparam('rerun_number')
)

LONGEST_WAIT_MS: Final = 600_000
"""No job is postponed for longer."""

SHOWN_ATTEMPTS: Final = 3
"""Failed attempts after which a job becomes an operation by itself."""


# Any: values of the further fields of a job.
def build_job(payload: JobPayload, **fields: Any) -> NewJob:
    """Return a job with a payload, and with the key of its type if it has one."""
    content = codec.dump(payload)
    key = {'key': job_key(payload.TYPE, content), **fields}
    return NewJob(payload.TYPE, content, **key)


# Any: JSON values.
def read_payload(kind: type[P], payload: Mapping[str, Any]) -> P:
    """Return the payload of a job; unknown fields are ignored.

    :raises InvalidJobPayload: a field is missing or has a value of another type
    """
    try:
        return codec.load(kind, payload)
    except MalformedData as error:
        raise InvalidJobPayload(type=kind.TYPE, reason=error.kwargs['reason']) from None


def add_job(session: Session, new: NewJob) -> None:
    """Add a job for any conductor. A job with a key is stored once.

    If a job with this type and key is waiting, no other is added. If it is running, it
    runs once more after its end. If the new job ``widens``, its payload is stored.
    """
    values = _values(new)
    is_job = Row.uuid == values['uuid']
    if new.key is None:
        change(session, _ADD, values)
    else:
        is_job = and_(Row.kind == new.type, Row.key == new.key)
        # One statement: reading first would leave a gap in which the stored job ends
        # and the new request is lost.
        (_ADD_OR_WIDEN if new.widens else _ADD_OR_RERUN).run(session, values)
    if new.operation is not None:
        operations.add(session, new.operation)
        operations.add_job(session, new.operation.uuid, is_job)


def add_delayed_jobs(session: Session, jobs: Sequence[tuple[NewJob, int]]) -> None:
    """Add jobs with keys as ``add_job`` does, in at most two statements.

    :param jobs: without a deadline; each with the milliseconds until it may start, of
        which ``LONGEST_WAIT_MS`` apply at most
    """
    if not jobs:
        return
    moment = read_now_ms(session)
    rows = [
        {
            **_values(new),
            'created_at': moment,
            'run_after': moment + min(delay, LONGEST_WAIT_MS),
        }
        for new, delay in jobs
    ]
    for row in rows:
        del row['limit_ms']
    _ADD_MANY.run(session, rows)


def add_running_job(session: Session, new: NewJob, owner: Owner) -> Job:
    """Add a job without a key that this process runs at once; return it leased."""
    job = Job(
        uuid=str(uuid4()),
        type=new.type,
        payload=add_caller(new.payload, new.request_id),
        owner=owner.name,
        lease=1,
        awaited=new.limit_ms is not None,
        request_id=new.request_id,
        host=new.host,
        operations=() if new.operation is None else (new.operation.uuid,),
    )
    times = {'lease_ms': owner.lease_ms, 'limit_ms': new.limit_ms}
    fixed = {'kind': new.type, 'state': JobState.RUNNING}
    change(session, _ADD_OWNED, {**_JOB.write(job), **fixed, **times})
    if new.operation is not None:
        operations.add(session, new.operation, OperationState.RUNNING)
        operations.add_job(session, new.operation.uuid, Row.uuid == job.uuid)
    return job


def _values(new: NewJob) -> dict[str, Any]:
    """Return the parameters of ``_ADD``; the database supplies the times."""
    return {
        **_NEW_JOB.write(new),
        'uuid': str(uuid4()),
        'kind': new.type,
        'payload': add_caller(new.payload, new.request_id),
        'state': JobState.WAITING,
        'limit_ms': new.limit_ms,
    }


def lease_jobs(
    session: Session,
    owner: Owner,
    limit: int,
    kinds: Collection[str] = tuple(OperationKind),
    shares: HostShares | None = None,
) -> tuple[Job, ...]:
    """Lease at most ``limit`` jobs that are due or whose lease has expired.

    If the call returns no job, no job may start now.

    In quarantine, jobs that change what instances may use are not leased.

    :param kinds: job types to lease; others belong to conductors of another release
    :param shares: of the jobs that the owner runs; None: no limit for a host. The
        leased jobs are counted in it.
    """
    shares = shares or HostShares(limit)
    # Two SELECTs, because an OR would use neither of the two indexes.
    rows = _lock_jobs(session, _DUE, kinds, limit, shares)
    if len(rows) < limit:
        number = limit - len(rows)
        rows += _lock_jobs(session, _ABANDONED, kinds, number, shares)
    return _lease_locked(session, owner, rows)


def lease_keyed_job(session: Session, owner: Owner, kind: str, key: str) -> Job | None:
    """Lease the job with the key, due or not, unless another worker runs it."""
    is_abandoned = and_(Row.state == JobState.RUNNING, Row.lease_until < now_ms())
    rows = session.execute(
        _LOCK.where(
            Row.kind == kind,
            Row.key == key,
            or_(Row.state == JobState.WAITING, is_abandoned),
            # The runner ends jobs that an operator has cancelled.
            Row.deadline.is_(None),
        )
    )
    return next(iter(_lease_locked(session, owner, rows.all())), None)


def add_and_lease_job(session: Session, owner: Owner, new: NewJob) -> Job | None:
    """Lease the job with the key of the new job; add it first if it does not exist.

    Other workers do not see the job in between, so none of them can lease it first.

    :returns: None: another worker runs the job
    """
    key = new.key or ''
    if not has_keyed_job(session, new.type, key):
        add_job(session, new)
    return lease_keyed_job(session, owner, new.type, key)


def has_keyed_job(session: Session, kind: str, key: str) -> bool:
    """Return whether an unfinished job has the key."""
    row = session.scalar(select(Row.id).where(Row.kind == kind, Row.key == key))
    return row is not None


def is_leased(session: Session, job: Job) -> bool:
    """Return whether this process still holds the lease of the job."""
    return session.scalar(select(Row.id).where(_LEASED), _lease(job)) is not None


def _lease_locked(
    session: Session, owner: Owner, rows: Sequence[AnyRow]
) -> tuple[Job, ...]:
    if not rows:
        return ()
    change(
        session,
        update(Row)
        .where(Row.id.in_([row.row_id for row in rows]))
        .values(
            state=JobState.RUNNING,
            owner=owner.name,
            lease=Row.lease + 1,
            lease_until=now_ms() + owner.lease_ms,
            attempts=Row.attempts + 1,
        ),
    )
    rows = sorted(rows, key=lambda row: int(row.row_id))
    by_job = operations.list_by_job(session, [row.uuid for row in rows])
    jobs = tuple(
        _JOB.read(row, owner=owner.name, operations=by_job[row.uuid]) for row in rows
    )
    operations.start(session, (uuid for job in jobs for uuid in job.operations))
    return jobs


def _lock_jobs(
    session: Session,
    statement: Select[*tuple[Any, ...]],
    kinds: Collection[str],
    number: int,
    shares: HostShares,
) -> list[AnyRow]:
    parameters = {
        'kinds': list(kinds),
        'full_hosts': list(shares.full_hosts()),
        'number': number,
    }
    # Rows that are locked and not leased are free again when the transaction commits.
    rows = session.execute(statement, parameters)
    return [row for row in rows if row.expired or shares.take(row.host)]


def renew_leases(session: Session, owner: Owner, uuids: Sequence[str]) -> None:
    """Renew the leases of running jobs whose deadline has not passed.

    Overdue jobs are not renewed, so another worker times them out.
    """
    in_time = or_(Row.deadline.is_(None), Row.deadline > now_ms())
    change(
        session,
        update(Row)
        .where(_is_leased_by(owner, uuids), in_time)
        .values(lease_until=now_ms() + owner.lease_ms),
    )


def _is_leased_by(owner: Owner, uuids: Sequence[str]) -> ColumnElement[bool]:
    return and_(
        Row.uuid.in_(uuids), Row.owner == owner.name, Row.state == JobState.RUNNING
    )


def _lease(job: Job) -> dict[str, Any]:
    """Return the parameters of ``_LEASED``, which is true while the lease lasts."""
    return {
        'leased_uuid': job.uuid,
        'leased_by': job.owner,
        'lease_number': job.lease,
    }


def _change(
    session: Session, job: Job, statement: Update, values: Values | None = None
) -> None:
    if change(session, statement, {**_lease(job), **(values or {})}) != 1:
        raise JobLost(job=job.uuid)


def finish_job(
    session: Session, job: Job, failure: operations.Failure | None = None
) -> None:
    """Finish the job. It waits again if another run was requested meanwhile.

    :param failure: why its operations fail; None: the job has succeeded
    """
    if (
        change(session, _FINISH, {**_lease(job), 'rerun_number': job.rerun_requested})
        != 1
    ):
        _change(session, job, _AGAIN)
        return
    operations.end_job(session, job.operations, failure, _outcome(job))


def _outcome(job: Job) -> OperationState:
    """Return the state of the operations of a job that does not succeed."""
    return OperationState.CANCELLED if job.cancelled else OperationState.FAILED


def replace_job(
    session: Session, job: Job, new: NewJob, failure: operations.Failure | None = None
) -> Job:
    """Finish the job and continue with another job in the same row and lease.

    One statement, so that at no time neither of the two jobs exists.

    :param failure: why the operations of the job fail; None: they have succeeded
    """
    replacement = replace(
        job,
        type=new.type,
        payload=add_caller(new.payload, job.request_id),
        attempts=1,
        step='',
        awaited=new.limit_ms is not None,
        host=new.host,
        expired=False,
        abandoned=False,
        cancelled=False,
        age=0.0,
        operations=(),
        is_replacement=True,
    )
    values = _JOB.write(replacement, ['payload', 'attempts', 'step', 'host'])
    values |= {'kind': new.type, 'limit_ms': new.limit_ms, 'last_error': ''}
    _change(session, job, _BECOME, values)
    operations.end_job(session, job.operations, failure, _outcome(job))
    return replacement


def record_job_step(session: Session, job: Job, step: str) -> None:
    """Store the completed step of the job, for a worker that continues it."""
    _change(session, job, _CHANGE, {'step': step})


def postpone_job(
    session: Session, job: Job, delay_ms: int, error: operations.Failure
) -> Job | None:
    """Let the job run again after a delay.

    A job that no client has requested becomes an operation when it has failed
    ``SHOWN_ATTEMPTS`` times, so that administrators see, retry and cancel it.

    :returns: None, or the expired job if the delay ends after its deadline
    """
    next_run = now_ms() + delay_ms
    values = {'last_error': str(error)[:_ERROR_MAX_LENGTH]}
    in_time = or_(Row.deadline.is_(None), next_run < Row.deadline)
    waiting = _WAIT.where(in_time).values(run_after=next_run)
    if change(session, waiting, {**_lease(job), **values}) == 1:
        uuids = job.operations
        if not uuids and job.attempts >= SHOWN_ATTEMPTS:
            uuids = (_show_job(session, job),)
        operations.note_delay(session, uuids, error)
        return None
    _change(session, job, _CHANGE, values)
    deadline = session.scalar(select(Row.deadline).where(Row.uuid == job.uuid))
    return replace(job, expired=True, cancelled=deadline == CANCELLED)


def _show_job(session: Session, job: Job) -> str:
    """Store an operation that shows a job, and return its uuid."""
    subject_type, subject_id = name_subject(job.payload)
    new = NewOperation(job.type, subject_type, subject_id, request_id=job.request_id)
    operations.add(session, new)
    operations.add_job(session, new.uuid, Row.uuid == job.uuid)
    return new.uuid


def pause_job(
    session: Session, job: Job, delay_ms: int, step: str, error: str = ''
) -> None:
    """Let the job run again after a delay; it has not failed.

    A cancelled job stays cancelled.
    """
    values = {
        'run_after': now_ms() + delay_ms,
        'attempts': 0,
        'step': step,
        'last_error': error[:_ERROR_MAX_LENGTH],
    }
    _change(session, job, _WAIT.values(**values))


def withdraw_cancellation(
    session: Session, job: Job, delay_ms: int, reason: str
) -> None:
    """Let a cancelled job go on after a delay, because it cannot be ended now."""
    error = reason[:_ERROR_MAX_LENGTH]
    values = {'run_after': now_ms() + delay_ms, 'deadline': None, 'last_error': error}
    _change(session, job, _WAIT.values(**values))


def fail_job(session: Session, job: Job, error: operations.Failure) -> None:
    """Mark the job as failed for the operator; a new job may have its key.

    A job that no client has requested becomes an operation, as in ``postpone_job``.
    """
    # Operations may have been added since the job was leased.
    uuids = operations.list_by_job(session, [job.uuid])[job.uuid]
    uuids = uuids or (_show_job(session, job),)
    values = {
        'state': JobState.FAILED,
        'key': None,
        'owner': None,
        'lease_until': None,
        'last_error': str(error)[:_ERROR_MAX_LENGTH],
    }
    _change(session, job, _CHANGE, values)
    operations.end_job(session, uuids, error, _outcome(job))


def return_jobs(session: Session, owner: Owner, uuids: Sequence[str]) -> None:
    """Return jobs that this process has not started, before it exits."""
    change(
        session,
        update(Row)
        .where(_is_leased_by(owner, uuids))
        .values(
            state=JobState.WAITING,
            owner=None,
            lease_until=None,
            attempts=Row.attempts - 1,
            run_after=now_ms(),
        ),
    )


def advance_jobs(session: Session, owner: Owner) -> int:
    """Let jobs run now that wait for longer than any job may; return their number.

    The clock of the database has been set back since they were created, postponed or
    leased. The owner has renewed its leases. A deadline keeps its distance from the
    creation.
    """
    latest = now_ms() + literal_column(str(LONGEST_WAIT_MS))
    waits = and_(Row.state == JobState.WAITING, Row.run_after > now_ms())
    is_running = Row.state == JobState.RUNNING
    was_created_later = Row.created_at > now_ms() + literal_column(str(_MAX_SKEW_MS))
    is_later = or_(
        and_(waits, or_(Row.run_after > latest, was_created_later)),
        and_(is_running, or_(Row.lease_until > latest, was_created_later)),
    )
    # The SELECT locks nothing, and nearly always returns nothing. A comparison in
    # ``_DUE`` would cost the range of the index: PostgreSQL and SQLite would read all
    # waiting jobs.
    ids = session.scalars(select(Row.id).where(is_later).limit(_MAX_ADVANCED)).all()
    if not ids:
        return 0
    advanced = update(Row).where(Row.id.in_(ids), is_later)
    # A new lease is not longer; an old one may be of a conductor that has died.
    is_old = Row.lease_until > now_ms() + owner.lease_ms
    lease_end = case((is_old, now_ms() - 1), else_=Row.lease_until)
    number = change(session, advanced.values(run_after=now_ms(), lease_until=lease_end))
    # MariaDB evaluates the values in their order, each with the columns set before.
    shifted = update(Row).where(Row.id.in_(ids), was_created_later)
    deadline = case(
        (Row.deadline == CANCELLED, CANCELLED),
        else_=Row.deadline - Row.created_at + now_ms(),
    )
    change(
        session,
        shifted.ordered_values((Row.deadline, deadline), (Row.created_at, now_ms())),
    )
    return number


def count_jobs(session: Session) -> tuple[JobCount, ...]:
    """Count the jobs of each type in each state."""
    rows = session.execute(
        select(Row.kind, Row.state, func.count())
        .group_by(Row.kind, Row.state)
        .order_by(Row.kind, Row.state)
    )
    return tuple(
        JobCount(type=kind, state=JobState(state), count=number)
        for kind, state, number in rows
    )


# --- callers ---


def add_caller(payload: Mapping[str, Any], request_id: str | None) -> dict[str, Any]:
    """Return the payload with the caller of the current request.

    :param request_id: request of the job; another request than the current one adds
        nothing
    """
    current = oslo_context.get_current()
    if request_id is None or current is None or current.request_id != request_id:
        return dict(payload)
    fields = {name: getattr(current, name) for name in CALLER_FIELDS}
    caller = {name: value for name, value in fields.items() if value}
    return {**payload, CALLER_KEY: caller} if caller else dict(payload)


# --- jobs that several transactions add ---


def placement_sync_job(
    hostname: str, request_id: str | None = None, *, deep: bool = False
) -> NewJob:
    """Return the job that makes Placement match the devices of a host.

    Each transaction that changes the result of ``providers.list_providers_of_host``
    writes this job.

    :param deep: read all providers of the host from Placement again
    """
    payload = PlacementSyncPayload(hostname, deep)
    return build_job(payload, request_id=request_id, widens=deep)


def sync_hosts(session: Session, hostnames: Iterable[str]) -> None:
    """Add the Placement sync jobs of hosts."""
    for hostname in hostnames:
        add_job(session, placement_sync_job(hostname))


def add_removal_job(session: Session, hostname: str) -> None:
    """Add the job that deletes the detached providers of a host after a wait.

    The wait begins again if the job is stored already.
    """
    new = build_job(ProviderRemovalPayload(hostname))
    add_delayed_jobs(session, [(new, LONGEST_WAIT_MS)])
    statement = update(Row).where(
        Row.kind == new.type, Row.key == hostname, Row.state == JobState.WAITING
    )
    change(session, statement.values(run_after=now_ms() + LONGEST_WAIT_MS))


def release_job(handle_uuid: str, hostname: str, request_id: str | None) -> NewJob:
    """Return the job that has a host clean an attach handle; one job for each handle.

    The payload names the handle only: its ARQ can change before the job runs again.
    Each attempt reads the handle with its generation, and stores its result for this
    generation only.
    """
    return build_job(ReleasePayload(handle_uuid), request_id=request_id, host=hostname)


def clean_job(handle_uuid: str, hostname: str, actor: str = CONDUCTOR_ACTOR) -> NewJob:
    """Return the job that has a host clean a unit; one job for each handle.

    The job carries no request, because the record of a cleaning run names no tenant.

    :param actor: the operator who starts it, or ``CONDUCTOR_ACTOR``
    """
    return build_job(CleanPayload(handle_uuid, actor), widens=True, host=hostname)
