# SPDX-License-Identifier: Apache-2.0
"""Jobs outlive their runners, and a runner that lost its lease changes nothing."""

from dataclasses import replace

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Job as Row
from cyborg_lite.exceptions import JobLost
from cyborg_lite.model.jobs import Job, JobCount, JobState, Kind, NewJob, Owner
from tests.fakes.rows import OWNER

SUCCESSOR = Owner(name='conductor:2:2', lease_ms=30_000)


def _silence(session: Session) -> None:
    """What a crash looks like after a while: every lease has run out."""
    session.execute(update(Row).values(lease_until=Row.created_at - 1))


def _rows(session: Session) -> list[tuple[str, str, str]]:
    wanted = select(Row.kind, Row.state, Row.step).order_by(Row.id)
    return [(kind, state, step) for kind, state, step in session.execute(wanted)]


def _pass_deadlines(session: Session) -> None:
    session.execute(update(Row).values(deadline=Row.created_at - 1))


def _owned(database: Database, limit_ms: int | None = None) -> Job:
    new = NewJob(Kind.BIND, {'instance': 'x'}, limit_ms=limit_ms)
    return database.write(jobs.add_owned, new, OWNER)


def test_a_job_that_its_writer_owns_is_nobody_elses(database: Database) -> None:
    _owned(database)
    assert database.write(jobs.take, SUCCESSOR, 10) == ()


def test_a_waiting_job_is_taken_once(database: Database) -> None:
    database.write(jobs.add, NewJob(Kind.RELEASE, {'handle': 'h'}, request_id='req-1'))
    (taken,) = database.write(jobs.take, OWNER, 10)
    assert (taken.kind, taken.payload) == (Kind.RELEASE, {'handle': 'h'})
    assert (taken.attempts, taken.lease, taken.request_id) == (1, 1, 'req-1')
    assert database.write(jobs.take, SUCCESSOR, 10) == ()


def test_no_more_jobs_are_taken_than_there_is_room_for(database: Database) -> None:
    for _ in range(5):
        database.write(jobs.add, NewJob(Kind.RELEASE))
    assert len(database.write(jobs.take, OWNER, 3)) == 3
    assert len(database.write(jobs.take, SUCCESSOR, 3)) == 2


def test_the_job_of_a_silent_runner_is_taken_over_with_its_step(
    database: Database,
) -> None:
    first = _owned(database)
    database.write(jobs.reach, first, 'claimed')
    database.write(_silence)
    (second,) = database.write(jobs.take, SUCCESSOR, 10)
    assert (second.uuid, second.step) == (first.uuid, 'claimed')
    assert (second.attempts, second.lease) == (2, 2)


def test_a_renewed_lease_is_kept(database: Database) -> None:
    job = _owned(database)
    database.write(_silence)
    database.write(jobs.renew, OWNER, [job.uuid])
    assert database.write(jobs.take, SUCCESSOR, 10) == ()


def test_nobody_renews_what_another_holds(database: Database) -> None:
    job = _owned(database)
    database.write(_silence)
    database.write(jobs.renew, SUCCESSOR, [job.uuid])
    assert len(database.write(jobs.take, SUCCESSOR, 10)) == 1


def test_what_is_late_is_taken_from_a_runner_that_still_waits(
    database: Database,
) -> None:
    """Else a host that does not answer would decide when Nova hears of a failure."""
    late = _owned(database, limit_ms=60_000)
    database.write(_pass_deadlines)
    database.write(_silence)
    database.write(jobs.renew, OWNER, [late.uuid])
    (taken,) = database.write(jobs.take, SUCCESSOR, 10)
    assert taken.expired
    with pytest.raises(JobLost):
        database.write(jobs.reach, late, 'later')


@pytest.mark.parametrize(
    'act',
    [
        lambda session, job: jobs.finish(session, job),
        lambda session, job: jobs.reach(session, job, 'later'),
        lambda session, job: jobs.become(session, job, NewJob(Kind.NOVA_EVENT)),
        lambda session, job: jobs.put_off(session, job, 10, 'slow'),
        lambda session, job: jobs.give_up(session, job, 'never'),
    ],
    ids=['finish', 'reach', 'become', 'put_off', 'give_up'],
)
def test_a_runner_that_lost_its_lease_changes_nothing(
    database: Database, act: object
) -> None:
    lost = _owned(database)
    database.write(_silence)
    database.write(jobs.take, SUCCESSOR, 10)
    before = database.read(_rows)
    with pytest.raises(JobLost):
        database.write(act, lost)  # type: ignore[arg-type]  # one of the above
    assert database.read(_rows) == before


def test_the_same_owner_with_an_old_lease_has_lost_too(database: Database) -> None:
    lost = _owned(database)
    database.write(_silence)
    database.write(jobs.take, OWNER, 10)
    with pytest.raises(JobLost):
        database.write(jobs.finish, lost)


DEEP = NewJob(Kind.PLACEMENT_SYNC, {'host': 'a', 'deep': True}, 'a', widens=True)
SHALLOW = NewJob(Kind.PLACEMENT_SYNC, {'host': 'a'}, 'a')


@pytest.mark.parametrize('calls', [(SHALLOW, DEEP), (DEEP, SHALLOW), (DEEP, DEEP)])
def test_a_job_that_waits_does_all_that_was_called_for(
    database: Database, calls: tuple[NewJob, NewJob]
) -> None:
    for new in calls:
        database.write(jobs.add, new)
    (job,) = database.write(jobs.take, OWNER, 10)
    assert job.payload == DEEP.payload


def test_a_job_that_runs_does_more_the_next_time(database: Database) -> None:
    database.write(jobs.add, SHALLOW)
    (running,) = database.write(jobs.take, OWNER, 10)
    database.write(jobs.add, DEEP)
    assert running.payload == SHALLOW.payload
    database.write(jobs.finish, running)
    (again,) = database.write(jobs.take, OWNER, 10)
    assert again.payload == DEEP.payload


def test_a_finished_job_leaves_no_row(database: Database) -> None:
    database.write(jobs.finish, _owned(database))
    assert database.read(_rows) == []


def test_a_job_becomes_another_without_a_gap(database: Database) -> None:
    bind = _owned(database)
    event = database.write(jobs.become, bind, NewJob(Kind.NOVA_EVENT, {'to': 'nova'}))
    assert (event.uuid, event.kind) == (bind.uuid, Kind.NOVA_EVENT)
    assert database.write(jobs.take, SUCCESSOR, 10) == ()
    database.write(jobs.finish, event)
    assert database.read(_rows) == []


def test_a_job_put_off_comes_back_later(database: Database) -> None:
    job = _owned(database)
    assert database.write(jobs.put_off, job, 3_600_000, 'the host is away') is None
    assert database.write(jobs.take, SUCCESSOR, 10) == ()


def test_a_job_put_off_for_no_time_comes_back_at_once(database: Database) -> None:
    job = _owned(database)
    assert database.write(jobs.put_off, job, 0, 'once more') is None
    (again,) = database.write(jobs.take, SUCCESSOR, 10)
    assert again.attempts == 2


def test_a_job_is_not_put_off_beyond_its_deadline(database: Database) -> None:
    job = _owned(database, limit_ms=1000)
    late = database.write(jobs.put_off, job, 5000, 'too slow')
    assert late == replace(job, expired=True)
    # It is still ours, to be wound up.
    database.write(jobs.finish, job)


def test_a_job_taken_after_its_deadline_says_so(database: Database) -> None:
    _owned(database, limit_ms=1000)
    database.write(_silence)
    database.write(_pass_deadlines)
    (late,) = database.write(jobs.take, SUCCESSOR, 10)
    assert late.expired


def test_a_job_with_a_key_is_written_once(database: Database) -> None:
    sync = NewJob(Kind.PLACEMENT_SYNC, {'host': 'compute-1'}, key='compute-1')
    database.write(jobs.add, sync)
    database.write(jobs.add, sync)
    assert len(database.read(_rows)) == 1


def test_a_job_called_for_while_it_runs_runs_once_more(database: Database) -> None:
    """Else the change that called for it would never reach Placement."""
    sync = NewJob(Kind.PLACEMENT_SYNC, {'host': 'compute-1'}, key='compute-1')
    database.write(jobs.add, sync)
    (running,) = database.write(jobs.take, OWNER, 10)
    database.write(jobs.add, sync)
    database.write(jobs.finish, running)
    (again,) = database.write(jobs.take, OWNER, 10)
    database.write(jobs.finish, again)
    assert database.read(_rows) == []


def test_jobs_of_other_keys_do_not_wait_for_each_other(database: Database) -> None:
    for host in ('compute-1', 'compute-2'):
        database.write(jobs.add, NewJob(Kind.PLACEMENT_SYNC, key=host))
    assert len(database.write(jobs.take, OWNER, 10)) == 2


def test_a_job_given_up_is_kept_and_makes_room_for_another(database: Database) -> None:
    sync = NewJob(Kind.PLACEMENT_SYNC, key='compute-1')
    database.write(jobs.add, sync)
    (failed,) = database.write(jobs.take, OWNER, 10)
    database.write(jobs.give_up, failed, 'x' * 5000)
    database.write(jobs.add, sync)
    assert database.read(jobs.count) == (
        JobCount(Kind.PLACEMENT_SYNC, JobState.FAILED, 1),
        JobCount(Kind.PLACEMENT_SYNC, JobState.WAITING, 1),
    )


def test_what_was_not_begun_is_handed_back(database: Database) -> None:
    job = _owned(database)
    database.write(jobs.hand_back, OWNER, [job.uuid])
    (taken,) = database.write(jobs.take, SUCCESSOR, 10)
    assert taken.attempts == 1


def test_jobs_of_a_newer_conductor_are_left_to_it(database: Database) -> None:
    database.write(jobs.add, NewJob(Kind.RELEASE))
    database.write(lambda s: s.execute(update(Row).values(kind='from-the-future')))
    assert database.write(jobs.take, OWNER, 10) == ()
    assert database.read(jobs.count) == (
        JobCount('from-the-future', JobState.WAITING, 1),
    )


def test_only_jobs_of_the_kinds_that_are_asked_for_are_taken(
    database: Database,
) -> None:
    database.write(jobs.add, NewJob(Kind.PROGRAM))
    database.write(jobs.add, NewJob(Kind.RELEASE))
    assert database.write(jobs.take, OWNER, 10, []) == ()
    (taken,) = database.write(jobs.take, OWNER, 10, [Kind.RELEASE])
    assert taken.kind == Kind.RELEASE


def test_more_jobs_can_be_written_than_32_bits_count(database: Database) -> None:
    database.write(jobs.add, NewJob(Kind.RELEASE))
    late = update(Row).values(id=2**31)
    database.write(lambda session: session.execute(late))
    (job,) = database.write(jobs.take, OWNER, 10)
    assert job.kind == Kind.RELEASE
