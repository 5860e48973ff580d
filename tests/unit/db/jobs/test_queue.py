# SPDX-License-Identifier: Apache-2.0
"""Job queue: leases, deadlines, keys and takeover from a failed conductor."""

from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.model.jobs import HostShares, Job, JobCount, JobState, NewJob, Owner
from cyborg_lite.model.operations import OperationKind
from tests.builders.rows import OWNER

SUCCESSOR = Owner(name='conductor:2:2', lease_ms=30_000)


def _expire_leases(session: Session) -> None:
    """Let all leases expire, as they do after a crash of the conductor."""
    session.execute(update(Row).values(lease_until=Row.created_at - 1))


def _rows(session: Session) -> list[tuple[str, str, str]]:
    columns = select(Row.kind, Row.state, Row.step).order_by(Row.id)
    return [(kind, state, step) for kind, state, step in session.execute(columns)]


def _pass_deadlines(session: Session) -> None:
    session.execute(update(Row).values(deadline=Row.created_at - 1))


def _add_running_job(database: Database, limit_ms: int | None = None) -> Job:
    new = NewJob(OperationKind.BIND, {'instance_uuid': 'x'}, limit_ms=limit_ms)
    return database.write(queue.add_running_job, new, OWNER)


def test_lease_jobs_expired_lease_keeps_step(database: Database) -> None:
    first = _add_running_job(database)
    database.write(queue.record_job_step, first, 'claimed')
    database.write(_expire_leases)
    (job,) = database.write(queue.lease_jobs, SUCCESSOR, 10)
    assert (job.uuid, job.step) == (first.uuid, 'claimed')
    assert (job.attempts, job.lease) == (2, 2)


def test_renew_leases_prevents_takeover(database: Database) -> None:
    job = _add_running_job(database)
    database.write(_expire_leases)
    database.write(queue.renew_leases, OWNER, [job.uuid])
    assert database.write(queue.lease_jobs, SUCCESSOR, 10) == ()


def test_renew_leases_of_another_owner_is_ignored(database: Database) -> None:
    job = _add_running_job(database)
    database.write(_expire_leases)
    database.write(queue.renew_leases, SUCCESSOR, [job.uuid])
    assert len(database.write(queue.lease_jobs, SUCCESSOR, 10)) == 1


def test_renew_leases_overdue_job_is_not_renewed(database: Database) -> None:
    """A host that does not answer must not delay the failure event for Nova."""
    late = _add_running_job(database, limit_ms=60_000)
    database.write(_pass_deadlines)
    database.write(_expire_leases)
    database.write(queue.renew_leases, OWNER, [late.uuid])
    (job,) = database.write(queue.lease_jobs, SUCCESSOR, 10)
    assert job.expired
    with pytest.raises(JobLost):
        database.write(queue.record_job_step, late, 'later')


@pytest.mark.parametrize(
    'act',
    [
        lambda session, job: queue.finish_job(session, job),
        lambda session, job: queue.record_job_step(session, job, 'later'),
        lambda session, job: queue.replace_job(
            session, job, NewJob(OperationKind.NOVA_EVENT)
        ),
        lambda session, job: queue.postpone_job(session, job, 10, 'slow'),
        lambda session, job: queue.fail_job(session, job, 'never'),
    ],
    ids=['finish', 'record_step', 'replace', 'postpone', 'fail'],
)
def test_job_operation_with_lost_lease_raises(database: Database, act: object) -> None:
    stale_job = _add_running_job(database)
    database.write(_expire_leases)
    database.write(queue.lease_jobs, SUCCESSOR, 10)
    before = database.read(_rows)
    with pytest.raises(JobLost):
        database.write(act, stale_job)  # type: ignore[arg-type]  # a function of the list above
    assert database.read(_rows) == before


def test_finish_job_with_earlier_lease_number_raises(database: Database) -> None:
    job = _add_running_job(database)
    database.write(_expire_leases)
    database.write(queue.lease_jobs, OWNER, 10)
    with pytest.raises(JobLost):
        database.write(queue.finish_job, job)


DEEP = NewJob(
    OperationKind.RECONCILE, {'hostname': 'a', 'deep': True}, 'a', widens=True
)
SHALLOW = NewJob(OperationKind.RECONCILE, {'hostname': 'a'}, 'a')


@pytest.mark.parametrize('calls', [(SHALLOW, DEEP), (DEEP, SHALLOW), (DEEP, DEEP)])
def test_add_job_waiting_job_has_widest_payload(
    database: Database, calls: tuple[NewJob, NewJob]
) -> None:
    for new in calls:
        database.write(queue.add_job, new)
    (job,) = database.write(queue.lease_jobs, OWNER, 10)
    assert job.payload == DEEP.payload


def test_add_job_running_job_widens_next_run(database: Database) -> None:
    database.write(queue.add_job, SHALLOW)
    (running,) = database.write(queue.lease_jobs, OWNER, 10)
    database.write(queue.add_job, DEEP)
    assert running.payload == SHALLOW.payload
    database.write(queue.finish_job, running)
    (next_job,) = database.write(queue.lease_jobs, OWNER, 10)
    assert next_job.payload == DEEP.payload


def test_postpone_job_is_not_leased_before_time(database: Database) -> None:
    job = _add_running_job(database)
    assert (
        database.write(queue.postpone_job, job, 3_600_000, 'the host is unreachable')
        is None
    )
    assert database.write(queue.lease_jobs, SUCCESSOR, 10) == ()


@pytest.mark.parametrize(('excess_ms', 'number'), [(-60_000, 0), (60_000, 1)])
def test_advance_jobs_after_clock_was_set_back(
    database: Database, excess_ms: int, number: int
) -> None:
    """The time of a job lies later than any postponement allows."""
    job = _add_running_job(database)
    delay = queue.LONGEST_WAIT_MS + excess_ms
    database.write(queue.postpone_job, job, delay, 'the host is unreachable')
    running = _add_running_job(database)
    assert database.write(queue.advance_jobs, SUCCESSOR) == number
    leased = database.write(queue.lease_jobs, SUCCESSOR, 10)
    assert [item.uuid for item in leased] == [job.uuid] * number
    assert database.read(queue.is_leased, running)


@pytest.mark.parametrize('step_ms', [300_000, 3_600_000])
def test_advance_jobs_ends_lease_from_before_a_clock_step(
    database: Database, step_ms: int
) -> None:
    """The conductors that had leased the job have died."""
    job = _add_running_job(database)
    times = {'created_at': now_ms() + step_ms, 'lease_until': now_ms() + step_ms}
    distant = update(Row).values(times)
    database.write(lambda session: session.execute(distant))
    assert database.write(queue.lease_jobs, SUCCESSOR, 10) == ()
    assert database.write(queue.advance_jobs, SUCCESSOR) == 1
    (leased,) = database.write(queue.lease_jobs, SUCCESSOR, 10)
    assert leased.uuid == job.uuid


@pytest.mark.parametrize('is_cancelled', [False, True])
def test_advance_jobs_keeps_limit_after_clock_was_set_back(
    database: Database, is_cancelled: bool
) -> None:
    """An hour later the job would otherwise still have its minute."""
    _add_running_job(database, limit_ms=60_000)
    hour = 3_600_000
    deadline = queue.CANCELLED if is_cancelled else Row.deadline + hour
    created = update(Row).values(created_at=Row.created_at + hour, deadline=deadline)
    database.write(lambda session: session.execute(created))
    assert database.write(queue.advance_jobs, SUCCESSOR) == 1
    ends = select(Row.deadline - now_ms(), Row.created_at - now_ms(), Row.deadline)
    limit, age, stored = database.read(lambda session: session.execute(ends).one())
    assert limit is not None
    assert limit <= 60_000
    assert age <= 0
    assert (stored == queue.CANCELLED) == is_cancelled


def test_lease_jobs_expired_job_of_full_host_is_leased(database: Database) -> None:
    for limit_ms in (60_000, 1000):
        new = NewJob(OperationKind.BIND, limit_ms=limit_ms, host='compute-1')
        database.write(queue.add_job, new)
    shares = partial(HostShares, 1, ['compute-1'])
    assert (
        database.write(queue.lease_jobs, OWNER, 10, [OperationKind.BIND], shares())
        == ()
    )
    late = update(Row).where(Row.deadline < now_ms() + 30_000)
    database.write(lambda session: session.execute(late.values(deadline=1)))
    (job,) = database.write(queue.lease_jobs, OWNER, 10, [OperationKind.BIND], shares())
    assert job.expired


def test_add_delayed_jobs_has_longest_wait(database: Database) -> None:
    delay = queue.LONGEST_WAIT_MS + 60_000
    database.write(
        queue.add_delayed_jobs, [(NewJob(OperationKind.RELEASE, key='k'), delay)]
    )
    assert database.write(queue.advance_jobs, SUCCESSOR) == 0
    assert database.write(queue.lease_jobs, OWNER, 10) == ()


def test_postpone_job_beyond_deadline_returns_expired_job(database: Database) -> None:
    job = _add_running_job(database, limit_ms=1000)
    late = database.write(queue.postpone_job, job, 5000, 'too slow')
    assert late == replace(job, expired=True)
    # The owner still has the lease, to handle the failure.
    database.write(queue.finish_job, job)


def test_lease_jobs_after_deadline_is_expired(database: Database) -> None:
    _add_running_job(database, limit_ms=1000)
    database.write(_expire_leases)
    database.write(_pass_deadlines)
    (late,) = database.write(queue.lease_jobs, SUCCESSOR, 10)
    assert late.expired


def test_lease_jobs_unknown_type_is_not_leased(database: Database) -> None:
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    database.write(lambda s: s.execute(update(Row).values(kind='from-the-future')))
    assert database.write(queue.lease_jobs, OWNER, 10) == ()
    assert database.read(queue.count_jobs) == (
        JobCount('from-the-future', JobState.WAITING, 1),
    )


def test_lease_jobs_leases_given_types_only(database: Database) -> None:
    database.write(queue.add_job, NewJob(OperationKind.PROGRAM))
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    assert database.write(queue.lease_jobs, OWNER, 10, []) == ()
    (job,) = database.write(queue.lease_jobs, OWNER, 10, [OperationKind.RELEASE])
    assert job.type == OperationKind.RELEASE


def test_job_id_may_exceed_32_bits(database: Database) -> None:
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    late = update(Row).values(id=2**31)
    database.write(lambda session: session.execute(late))
    (job,) = database.write(queue.lease_jobs, OWNER, 10)
    assert job.type == OperationKind.RELEASE


# --- leases of the one job with a key, by a caller that needs its result ------------


HOST = 'compute-1'
CALLER = Owner(name='conductor:2:2', lease_ms=30_000)


def _lease_keyed(database: Database) -> Job | None:
    return database.write(queue.lease_keyed_job, CALLER, OperationKind.RECONCILE, HOST)


def test_lease_keyed_job_expired_lease_is_abandoned(database: Database) -> None:
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    database.write(queue.lease_jobs, OWNER, 1)
    database.write(_expire_leases)
    leased = _lease_keyed(database)
    assert leased is not None
    assert leased.abandoned


def test_lease_jobs_expired_lease_is_abandoned(database: Database) -> None:
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    (first,) = database.write(queue.lease_jobs, OWNER, 1)
    database.write(_expire_leases)
    (second,) = database.write(queue.lease_jobs, CALLER, 1)
    assert (first.abandoned, second.abandoned) == (False, True)


def test_lease_keyed_job_absent_or_cancelled_is_none(database: Database) -> None:
    assert _lease_keyed(database) is None
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    cancelled = update(Row).values(deadline=queue.CANCELLED)
    database.write(lambda session: session.execute(cancelled))
    assert _lease_keyed(database) is None


def test_add_and_lease_job_adds_job_once(database: Database) -> None:
    new = queue.placement_sync_job(HOST)
    job = database.write(queue.add_and_lease_job, CALLER, new)
    assert job is not None
    assert database.read(queue.has_keyed_job, OperationKind.RECONCILE, HOST)
    assert database.write(queue.add_and_lease_job, OWNER, new) is None
    database.write(queue.finish_job, job)
    assert not database.read(queue.has_keyed_job, OperationKind.RECONCILE, HOST)
