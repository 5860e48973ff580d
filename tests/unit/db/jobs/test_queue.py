# SPDX-License-Identifier: Apache-2.0
"""Job queue: leases, deadlines, keys and takeover from a failed conductor."""

from dataclasses import replace

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.model.jobs import HostShares, Job, JobCount, JobState, NewJob, Owner
from cyborg_lite.model.operations import OperationKind
from tests.builders.rows import OWNER
from tests.builders.table_rows import change_rows

SUCCESSOR = Owner(name='conductor:2:2', lease_ms=30_000)


def expire_leases(database: Database) -> None:
    """Let all leases expire, as they do after a crash of the conductor."""
    change_rows(database, Row, lease_until=Row.created_at - 1)


def pass_deadlines(database: Database) -> None:
    change_rows(database, Row, deadline=Row.created_at - 1)


def _rows(session: Session) -> list[tuple[str, str, str]]:
    columns = select(Row.kind, Row.state, Row.step).order_by(Row.id)
    return [(kind, state, step) for kind, state, step in session.execute(columns)]


def _add_running_job(database: Database, limit_ms: int | None = None) -> Job:
    new = NewJob(OperationKind.BIND, {'instance_uuid': 'x'}, limit_ms=limit_ms)
    return database.write(queue.add_running_job, new, OWNER)


def test_lease_jobs_expired_lease_keeps_step(database: Database) -> None:
    first = _add_running_job(database)
    database.write(queue.record_job_step, first, 'claimed')
    expire_leases(database)
    (job,) = database.write(queue.lease_jobs, SUCCESSOR, 10)
    assert (job.uuid, job.step) == (first.uuid, 'claimed')
    assert (job.attempts, job.lease) == (2, 2)
    assert (first.abandoned, job.abandoned) == (False, True)


def test_renew_leases_prevents_takeover(database: Database) -> None:
    job = _add_running_job(database)
    expire_leases(database)
    database.write(queue.renew_leases, OWNER, [job.uuid])
    assert database.write(queue.lease_jobs, SUCCESSOR, 10) == ()


def test_renew_leases_of_another_owner_is_ignored(database: Database) -> None:
    job = _add_running_job(database)
    expire_leases(database)
    database.write(queue.renew_leases, SUCCESSOR, [job.uuid])
    assert len(database.write(queue.lease_jobs, SUCCESSOR, 10)) == 1


def test_renew_leases_overdue_job_is_not_renewed(database: Database) -> None:
    """A host that does not answer must not delay the failure event for Nova."""
    late = _add_running_job(database, limit_ms=60_000)
    pass_deadlines(database)
    expire_leases(database)
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
@pytest.mark.parametrize('owner', [SUCCESSOR, OWNER], ids=['other', 'same'])
def test_job_operation_with_lost_lease_raises(
    database: Database, act: object, owner: Owner
) -> None:
    stale_job = _add_running_job(database)
    expire_leases(database)
    database.write(queue.lease_jobs, owner, 10)
    before = database.read(_rows)
    with pytest.raises(JobLost):
        database.write(act, stale_job)  # type: ignore[arg-type]  # a function of the list above
    assert database.read(_rows) == before


SHALLOW = NewJob(OperationKind.RECONCILE, {'hostname': 'a'}, 'a')
DEEP = replace(SHALLOW, payload={'hostname': 'a', 'deep': True}, widens=True)


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
    distant = now_ms() + step_ms
    change_rows(database, Row, created_at=distant, lease_until=distant)
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
    change_rows(database, Row, created_at=Row.created_at + hour, deadline=deadline)
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

    def lease() -> tuple[Job, ...]:
        shares, kinds = HostShares(1, ['compute-1']), [OperationKind.BIND]
        return database.write(queue.lease_jobs, OWNER, 10, kinds, shares)

    assert lease() == ()
    change_rows(database, Row, Row.deadline < now_ms() + 30_000, deadline=1)
    (job,) = lease()
    assert job.expired


def test_add_delayed_jobs_has_longest_wait(database: Database) -> None:
    new, delay = NewJob(OperationKind.RELEASE), queue.LONGEST_WAIT_MS + 60_000
    database.write(queue.add_delayed_jobs, [(new, delay)])
    assert database.write(queue.advance_jobs, SUCCESSOR) == 0
    assert database.write(queue.lease_jobs, OWNER, 10) == ()


def test_lease_jobs_unknown_type_is_not_leased(database: Database) -> None:
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    change_rows(database, Row, kind='from-the-future')
    assert database.write(queue.lease_jobs, OWNER, 10) == ()
    assert database.read(queue.count_jobs) == (
        JobCount('from-the-future', JobState.WAITING, 1),
    )


# --- leases of the one job with a key, by a caller that needs its result ------------


HOST = 'compute-1'


def _lease_keyed(database: Database) -> Job | None:
    return database.write(
        queue.lease_keyed_job, SUCCESSOR, OperationKind.RECONCILE, HOST
    )


def test_lease_keyed_job_expired_lease_is_abandoned(database: Database) -> None:
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    database.write(queue.lease_jobs, OWNER, 1)
    expire_leases(database)
    leased = _lease_keyed(database)
    assert leased is not None
    assert leased.abandoned


def test_lease_keyed_job_absent_or_cancelled_is_none(database: Database) -> None:
    assert _lease_keyed(database) is None
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    change_rows(database, Row, deadline=queue.CANCELLED)
    assert _lease_keyed(database) is None


def test_add_and_lease_job_adds_job_once(database: Database) -> None:
    new = queue.placement_sync_job(HOST)
    job = database.write(queue.add_and_lease_job, SUCCESSOR, new)
    assert job is not None
    assert database.read(queue.has_keyed_job, OperationKind.RECONCILE, HOST)
    assert database.write(queue.add_and_lease_job, OWNER, new) is None
    database.write(queue.finish_job, job)
    assert not database.read(queue.has_keyed_job, OperationKind.RECONCILE, HOST)
