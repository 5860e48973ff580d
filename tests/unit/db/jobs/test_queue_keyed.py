# SPDX-License-Identifier: Apache-2.0
"""Leases of the one job with a key, by a caller that needs its result."""

from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.jobs import Job, JobType, Owner
from tests.builders.rows import OWNER

HOST = 'compute-1'
CALLER = Owner(name='conductor:2:2', lease_ms=30_000)


def _expire_leases(session: Session) -> None:
    session.execute(update(Row).values(lease_until=Row.created_at - 1))


def _lease_keyed(database: Database) -> Job | None:
    return database.write(queue.lease_keyed_job, CALLER, JobType.PLACEMENT_SYNC, HOST)


def test_lease_keyed_job_postponed_job_is_leased(database: Database) -> None:
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    (job,) = database.write(queue.lease_jobs, OWNER, 1)
    assert _lease_keyed(database) is None
    database.write(queue.postpone_job, job, 3_600_000, 'later')
    leased = _lease_keyed(database)
    assert leased is not None
    assert (leased.uuid, leased.owner, leased.abandoned) == (
        job.uuid,
        CALLER.name,
        False,
    )
    assert database.read(queue.is_leased, leased)
    assert not database.read(queue.is_leased, job)


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
    assert database.read(queue.has_keyed_job, JobType.PLACEMENT_SYNC, HOST)
    assert database.write(queue.add_and_lease_job, OWNER, new) is None
    database.write(queue.finish_job, job)
    assert not database.read(queue.has_keyed_job, JobType.PLACEMENT_SYNC, HOST)
