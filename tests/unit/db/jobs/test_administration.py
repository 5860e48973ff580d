# SPDX-License-Identifier: Apache-2.0
"""Operations of an administrator on jobs: list, retry and cancel."""

from typing import Any

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.errors.jobs import OperationRefused
from cyborg_lite.model.jobs import Job, JobRecord, JobState, NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.rows import OWNER
from tests.builders.service_rows import record_heartbeat
from tests.builders.table_rows import change_rows

RELEASE = NewJob(OperationKind.RELEASE, {'handle_uuid': 'h1'}, key='h1')
SYNC = NewJob(OperationKind.RECONCILE, {'hostname': 'compute-1'}, key='compute-1')
BIND = NewJob(
    OperationKind.BIND, {'instance_uuid': 'i1'}, limit_ms=240_000, request_id='req-1'
)


def list_jobs(database: Database, *filters: Any) -> tuple[JobRecord, ...]:
    return database.read(administration.list_jobs, *filters)


def read_only_job(database: Database) -> JobRecord:
    (job,) = list_jobs(database)
    return job


def lease_jobs(database: Database) -> list[Job]:
    return list(database.write(queue.lease_jobs, OWNER, 10))


def add_failed_job(database: Database, new: NewJob) -> str:
    """Add a job that has failed; return its uuid."""
    database.write(queue.add_job, new)
    (job,) = lease_jobs(database)
    database.write(queue.fail_job, job, 'The agent does not answer.')
    return job.uuid


# --- requests -------------------------------------------------------------------------


@pytest.mark.parametrize('is_refresh', [False, True])
def test_refresh_has_agent_report_again(database: Database, is_refresh: bool) -> None:
    record_heartbeat(database, 'compute-1')
    database.write(agents.store_digest, 'compute-1', 'digest', 'boot-1')
    database.write(services.request_host_job, SYNC, 'compute-1', is_refresh=is_refresh)
    (agent,) = database.read(services.list_services)
    assert agent.digest == (None if is_refresh else 'digest')


# --- list -----------------------------------------------------------------------------


def test_list_jobs_filters_by_type_and_state(database: Database) -> None:
    release = add_failed_job(database, RELEASE)
    database.write(queue.add_job, SYNC)
    database.write(queue.add_running_job, BIND, OWNER)

    def list_kinds(*filters: Any) -> list[str]:
        return [job.type for job in list_jobs(database, *filters)]

    assert list_kinds() == ['release', 'reconcile', 'bind']
    assert list_kinds(['release', 'bind']) == ['release', 'bind']
    assert list_kinds([], ['waiting', 'running']) == ['reconcile', 'bind']
    assert list_kinds(['bind'], ['failed']) == []
    assert [job.uuid for job in list_jobs(database, [], ['failed'])] == [release]


def test_list_jobs_unknown_type_is_listed(database: Database) -> None:
    database.write(queue.add_job, SYNC)
    change_rows(database, Row, kind='from-the-future')
    assert read_only_job(database).type == 'from-the-future'


# --- retry ----------------------------------------------------------------------------


@pytest.mark.parametrize('new', [RELEASE, SYNC])
def test_retry_failed_job_keeps_key(database: Database, new: NewJob) -> None:
    uuid = add_failed_job(database, new)
    assert read_only_job(database).key is None
    assert database.write(administration.retry_job, uuid)
    assert read_only_job(database).key == new.key
    # A key has one waiting job: adding the job again writes no second row.
    database.write(queue.add_job, new)
    (next_job,) = lease_jobs(database)
    assert (next_job.uuid, next_job.attempts, next_job.expired) == (uuid, 1, False)


def test_retry_failed_job_newer_job_replaces_it(database: Database) -> None:
    uuid = add_failed_job(database, RELEASE)
    database.write(queue.add_job, RELEASE)
    assert not database.write(administration.retry_job, uuid)
    job = read_only_job(database)
    assert (job.key, job.state, job.uuid == uuid) == ('h1', JobState.WAITING, False)


def test_retry_job_gets_full_time_limit_again(database: Database) -> None:
    uuid = add_failed_job(database, BIND)
    hour_ago = Row.created_at - 3_600_000
    change_rows(database, Row, created_at=hour_ago, deadline=hour_ago + 240_000)
    database.write(administration.retry_job, uuid)
    record = read_only_job(database)
    assert record.deadline_in is not None
    assert 180 < record.deadline_in <= 240
    assert record.age < 60


def test_retry_postponed_job_is_due_at_once(database: Database) -> None:
    database.write(queue.add_job, SYNC)
    (job,) = lease_jobs(database)
    database.write(queue.postpone_job, job, 600_000, 'Placement is unreachable.')
    assert read_only_job(database).due_in > 300
    database.write(administration.retry_job, job.uuid)
    assert [leased_job.uuid for leased_job in lease_jobs(database)] == [job.uuid]


def test_retry_running_job_is_refused(database: Database) -> None:
    job = database.write(queue.add_running_job, BIND, OWNER)
    with pytest.raises(OperationRefused, match=OWNER.name):
        database.write(administration.retry_job, job.uuid)


# --- cancel ---------------------------------------------------------------------------


def test_cancel_postponed_job_is_leased_as_expired(database: Database) -> None:
    database.write(queue.add_job, BIND)
    (job,) = lease_jobs(database)
    database.write(queue.postpone_job, job, 100_000, 'The host is unreachable.')
    database.write(administration.cancel_job, job.uuid)
    assert read_only_job(database).cancelled
    (next_job,) = lease_jobs(database)
    assert (next_job.uuid, next_job.expired) == (job.uuid, True)
    assert next_job.cancelled


def test_lease_overdue_job_is_not_cancelled(database: Database) -> None:
    database.write(queue.add_job, BIND)
    change_rows(database, Row, deadline=Row.created_at - 1)
    (late,) = lease_jobs(database)
    assert (late.expired, late.cancelled) == (True, False)


def test_cancelled_job_requested_again_runs_again(database: Database) -> None:
    database.write(queue.add_job, SYNC)
    (job,) = lease_jobs(database)
    database.write(administration.cancel_job, job.uuid)
    database.write(queue.add_job, SYNC)
    database.write(queue.finish_job, job)
    (next_job,) = lease_jobs(database)
    assert (next_job.uuid, next_job.expired) == (job.uuid, False)


def test_cancel_failed_release_is_refused(database: Database) -> None:
    """The device would never be cleaned without this job."""
    uuid = add_failed_job(database, RELEASE)
    with pytest.raises(OperationRefused, match='Retry it'):
        database.write(administration.cancel_job, uuid)
    assert read_only_job(database).state is JobState.FAILED


def test_cancel_failed_sync_deletes_job(database: Database) -> None:
    uuid = add_failed_job(database, SYNC)
    database.write(administration.cancel_job, uuid)
    assert list_jobs(database) == ()
