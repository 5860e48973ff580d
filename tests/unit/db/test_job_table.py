# SPDX-License-Identifier: Apache-2.0
"""What an operator may do to jobs, and that nothing is lost by it."""

from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db import job_table, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Job as Row
from cyborg_lite.exceptions import JobNotFound, JobRefused
from cyborg_lite.model.jobs import Job, JobRecord, JobState, Kind, NewJob
from tests.fakes.rows import OWNER

RELEASE = NewJob(Kind.RELEASE, {'handle': 'h1'}, key='h1')
SYNC = NewJob(Kind.PLACEMENT_SYNC, {'host': 'compute-1'}, key='compute-1')
BIND = NewJob(Kind.BIND, {'instance': 'i1'}, limit_ms=240_000, request_id='req-1')


def listed(database: Database, *about: Any) -> tuple[JobRecord, ...]:
    return database.read(job_table.listed, *about)


def only(database: Database) -> JobRecord:
    (job,) = listed(database)
    return job


def taken(database: Database) -> list[Job]:
    return list(database.write(jobs.take, OWNER, 10))


def failed(database: Database, new: NewJob) -> str:
    """The uuid of a job that was given up."""
    database.write(jobs.add, new)
    (job,) = taken(database)
    database.write(jobs.give_up, job, 'The agent does not answer.')
    return job.uuid


def change(database: Database, **columns: Any) -> None:
    database.write(_change, columns)


def _change(session: Session, columns: dict[str, Any]) -> None:
    session.execute(update(Row).values(**columns))


# --- list -----------------------------------------------------------------------------


def test_a_job_is_listed_with_all_that_is_known_of_it(database: Database) -> None:
    job = database.write(jobs.add_owned, BIND, OWNER)
    database.write(jobs.reach, job, 'Claimed')
    shown = only(database)
    assert (shown.uuid, shown.kind, shown.state) == (job.uuid, 'bind', 'running')
    assert (shown.payload, shown.request_id) == ({'instance': 'i1'}, 'req-1')
    assert (shown.owner, shown.step, shown.attempts) == (OWNER.name, 'Claimed', 1)
    assert 0 <= shown.age < 60
    assert shown.deadline_in is not None
    assert 180 < shown.deadline_in <= 240
    assert not shown.cancelled


def test_jobs_are_chosen_by_kind_and_state(database: Database) -> None:
    release = failed(database, RELEASE)
    database.write(jobs.add, SYNC)
    database.write(jobs.add_owned, BIND, OWNER)

    def kinds(*about: Any) -> list[str]:
        return [job.kind for job in listed(database, *about)]

    assert kinds() == ['release', 'placement-sync', 'bind']
    assert kinds(['release', 'bind']) == ['release', 'bind']
    assert kinds([], ['waiting', 'running']) == ['placement-sync', 'bind']
    assert kinds(['bind'], ['failed']) == []
    assert [job.uuid for job in listed(database, [], ['failed'])] == [release]


def test_a_job_of_a_newer_conductor_is_listed_too(database: Database) -> None:
    database.write(jobs.add, SYNC)
    change(database, kind='from-the-future')
    assert only(database).kind == 'from-the-future'


# --- retry ----------------------------------------------------------------------------


@pytest.mark.parametrize('new', [RELEASE, SYNC])
def test_a_failed_job_is_tried_again_under_its_key(
    database: Database, new: NewJob
) -> None:
    uuid = failed(database, new)
    assert only(database).key is None
    assert database.write(job_table.retry, uuid)
    assert only(database).key == new.key
    # One at a time: calling for it once more writes no second job.
    database.write(jobs.add, new)
    (again,) = taken(database)
    assert (again.uuid, again.attempts, again.expired) == (uuid, 1, False)


def test_a_failed_job_gives_way_to_a_later_one(database: Database) -> None:
    uuid = failed(database, RELEASE)
    database.write(jobs.add, RELEASE)
    assert not database.write(job_table.retry, uuid)
    job = only(database)
    assert job.uuid != uuid
    assert (job.key, job.state) == ('h1', JobState.WAITING)


def test_a_retry_has_as_long_as_the_first_try_had(database: Database) -> None:
    uuid = failed(database, BIND)
    hour_ago = Row.created_at - 3_600_000
    change(database, created_at=hour_ago, deadline=hour_ago + 240_000)
    database.write(job_table.retry, uuid)
    shown = only(database)
    assert shown.deadline_in is not None
    assert 180 < shown.deadline_in <= 240
    assert shown.age < 60


def test_a_job_that_was_put_off_is_run_now(database: Database) -> None:
    database.write(jobs.add, SYNC)
    (job,) = taken(database)
    database.write(jobs.put_off, job, 600_000, 'Placement is away.')
    assert only(database).due_in > 300
    database.write(job_table.retry, job.uuid)
    assert [one.uuid for one in taken(database)] == [job.uuid]


def test_what_runs_is_not_run_twice(database: Database) -> None:
    job = database.write(jobs.add_owned, BIND, OWNER)
    with pytest.raises(JobRefused, match=OWNER.name):
        database.write(job_table.retry, job.uuid)


def test_what_is_cancelled_is_not_retried(database: Database) -> None:
    database.write(jobs.add, BIND)
    uuid = only(database).uuid
    database.write(job_table.cancel, uuid)
    with pytest.raises(JobRefused, match='cancelled'):
        database.write(job_table.retry, uuid)


# --- cancel ---------------------------------------------------------------------------


def test_what_is_cancelled_is_taken_at_once_to_be_wound_up(
    database: Database,
) -> None:
    database.write(jobs.add, BIND)
    (job,) = taken(database)
    database.write(jobs.put_off, job, 100_000, 'The host is away.')
    database.write(job_table.cancel, job.uuid)
    assert only(database).cancelled
    (again,) = taken(database)
    assert (again.uuid, again.expired, again.cancelled) == (job.uuid, True, True)


def test_what_is_only_late_is_not_cancelled(database: Database) -> None:
    database.write(jobs.add, BIND)
    change(database, deadline=Row.created_at - 1)
    (late,) = taken(database)
    assert (late.expired, late.cancelled) == (True, False)


def test_what_runs_goes_on_and_gets_no_further_attempt(database: Database) -> None:
    job = database.write(jobs.add_owned, BIND, OWNER)
    database.write(job_table.cancel, job.uuid)
    assert only(database).state is JobState.RUNNING
    database.write(jobs.reach, job, 'Claimed')
    late = database.write(jobs.put_off, job, 1, 'The host is away.')
    assert late is not None
    assert (late.expired, late.cancelled) == (True, True)


def test_what_succeeds_though_cancelled_runs_again_if_it_was_called_for(
    database: Database,
) -> None:
    database.write(jobs.add, SYNC)
    (job,) = taken(database)
    database.write(job_table.cancel, job.uuid)
    database.write(jobs.add, SYNC)
    database.write(jobs.finish, job)
    (again,) = taken(database)
    assert (again.uuid, again.expired) == (job.uuid, False)


def test_a_failed_release_is_not_forgotten(database: Database) -> None:
    """It is all that still wants the device to be cleaned."""
    uuid = failed(database, RELEASE)
    with pytest.raises(JobRefused, match='Retry it'):
        database.write(job_table.cancel, uuid)
    assert only(database).state is JobState.FAILED


def test_another_failed_job_is_forgotten(database: Database) -> None:
    uuid = failed(database, SYNC)
    database.write(job_table.cancel, uuid)
    assert listed(database) == ()


@pytest.mark.parametrize('what', [job_table.retry, job_table.cancel])
def test_a_job_that_is_not_there_is_told(database: Database, what: Any) -> None:
    with pytest.raises(JobNotFound, match='no-such-job'):
        database.write(what, 'no-such-job')


def test_only_the_job_that_is_named_is_changed(database: Database) -> None:
    database.write(jobs.add, SYNC)
    other = only(database).uuid
    database.write(jobs.add, BIND)
    (bind,) = listed(database, ['bind'])
    database.write(job_table.cancel, bind.uuid)
    cancelled = {job.uuid: job.cancelled for job in listed(database)}
    assert cancelled == {other: False, bind.uuid: True}
