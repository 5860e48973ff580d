# SPDX-License-Identifier: Apache-2.0
"""The runner: at once what was written here, by lease what the dead left behind."""

import threading
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.db import job_table, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Job as Row
from cyborg_lite.exceptions import HostAway, JobLost
from cyborg_lite.model.jobs import Job, JobCount, JobState, Kind, NewJob, Owner

PATIENCE = 10  # seconds until a test that waits for an event has failed


class Scripted:
    """A handler that does what the test says, and tells when it did."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.act: Callable[[Job], Job | None] = self.finish
        self.seen: list[Job] = []
        self.expired: list[str] = []
        self.done = threading.Event()

    def finish(self, job: Job) -> None:
        self._database.write(jobs.finish, job)

    def run(self, job: Job) -> Job | None:
        self.seen.append(job)
        try:
            return self.act(job)
        finally:
            self.done.set()

    def expire(self, job: Job, reason: str) -> Job | None:
        self.expired.append(reason)
        self.finish(job)
        self.done.set()
        return None


@pytest.fixture
def handler(database: Database) -> Scripted:
    return Scripted(database)


@pytest.fixture
def runner(database: Database, handler: Scripted) -> Iterator[JobRunner]:
    handlers: dict[str, Handler] = {Kind.RELEASE: handler, Kind.NOVA_EVENT: handler}
    owner = owner_of_process(lease_seconds=30)
    runner = JobRunner(database, handlers, owner, workers=2)
    yield runner
    runner.stop()


def rows(database: Database) -> list[tuple[str, str]]:
    return database.read(_rows)


def _rows(session: Session) -> list[tuple[str, str]]:
    wanted = select(Row.state, Row.last_error).order_by(Row.id)
    return [(state, error) for state, error in session.execute(wanted)]


def run_here(runner: JobRunner, database: Database, **fields: int) -> None:
    """A job that this process writes and owns, run to the end of what is begun."""
    new = NewJob(Kind.RELEASE, limit_ms=fields.get('limit_ms'))
    job = database.write(jobs.add_owned, new, runner.owner)
    runner.start()
    runner.run(job)


def ended(runner: JobRunner, handler: Scripted) -> None:
    assert handler.done.wait(PATIENCE)
    runner.stop()
    runner.wait()


def test_no_two_processes_have_the_same_name() -> None:
    assert owner_of_process(1).name != owner_of_process(1).name


def test_a_job_written_here_runs_without_a_poll(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    run_here(runner, database)
    ended(runner, handler)
    assert rows(database) == []


def test_a_job_that_waits_is_found(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    database.write(jobs.add, NewJob(Kind.RELEASE, request_id='req-1'))
    runner.start()
    ended(runner, handler)
    assert [job.request_id for job in handler.seen] == ['req-1']
    assert rows(database) == []


def test_the_job_of_a_dead_conductor_is_taken_over(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    dead = Owner('conductor:dead', 30_000)
    job = database.write(jobs.add_owned, NewJob(Kind.RELEASE), dead)
    database.write(jobs.reach, job, 'half-way')
    database.write(lambda s: s.execute(update(Row).values(lease_until=0)))
    runner.start()
    ended(runner, handler)
    assert [job.step for job in handler.seen] == ['half-way']
    assert rows(database) == []


def test_what_a_job_becomes_is_run_next(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    def become(job: Job) -> Job | None:
        if job.kind == Kind.NOVA_EVENT:
            handler.finish(job)
            return None
        return database.write(jobs.become, job, NewJob(Kind.NOVA_EVENT))

    handler.act = become
    run_here(runner, database)
    ended(runner, handler)
    assert [job.kind for job in handler.seen] == [Kind.RELEASE, Kind.NOVA_EVENT]
    assert rows(database) == []


def test_a_failure_puts_the_job_off_with_its_reason(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    def away(job: Job) -> None:
        raise HostAway(host='compute-1')

    handler.act = away
    run_here(runner, database)
    ended(runner, handler)
    ((state, error),) = rows(database)
    assert state == JobState.WAITING
    assert 'compute-1 does not answer' in error


def test_a_fault_of_ours_costs_an_attempt_and_tells_nobody_its_insides(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    def stumble(job: Job) -> None:
        raise ZeroDivisionError('secret')

    handler.act = stumble
    run_here(runner, database)
    ended(runner, handler)
    ((state, error),) = rows(database)
    assert state == JobState.WAITING
    assert 'secret' not in error


def test_beyond_its_deadline_a_job_is_wound_up(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    def away(job: Job) -> None:
        raise HostAway(host='compute-1')

    handler.act = away
    run_here(runner, database, limit_ms=1)
    ended(runner, handler)
    assert handler.expired == ['The agent of host compute-1 does not answer.']
    assert rows(database) == []


def test_what_an_operator_cancelled_is_wound_up_and_not_begun(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    database.write(jobs.add, NewJob(Kind.RELEASE))
    (job,) = database.read(job_table.listed)
    database.write(job_table.cancel, job.uuid)
    runner.start()
    ended(runner, handler)
    assert handler.seen == []
    assert handler.expired == ['It was cancelled by an operator.']
    assert rows(database) == []


def test_what_is_cancelled_while_it_runs_says_so(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    def cancelled(job: Job) -> None:
        database.write(job_table.cancel, job.uuid)
        raise HostAway(host='compute-1')

    handler.act = cancelled
    run_here(runner, database)
    ended(runner, handler)
    assert handler.expired == ['It was cancelled by an operator.']


def test_a_lost_job_is_dropped(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    def lose(job: Job) -> None:
        raise JobLost(job=job.uuid)

    handler.act = lose
    run_here(runner, database)
    ended(runner, handler)
    assert rows(database) == [(JobState.RUNNING, '')]


def test_what_is_begun_is_finished_on_the_way_out(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(job: Job) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)
        handler.finish(job)

    handler.act = slow
    run_here(runner, database)
    assert begun.wait(PATIENCE)
    runner.stop()
    go_on.set()
    runner.wait()
    assert rows(database) == []


def test_what_is_not_begun_is_handed_back_on_the_way_out(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(job: Job) -> None:
        begun.release()
        assert go_on.wait(PATIENCE)
        handler.finish(job)

    handler.act = slow
    runner.start()
    for _ in range(3):  # one more than there are workers
        new = NewJob(Kind.RELEASE)
        runner.run(database.write(jobs.add_owned, new, runner.owner))
    for _ in range(2):
        assert begun.acquire(timeout=PATIENCE)
    runner.stop()
    waiting = threading.Thread(target=runner.wait)
    waiting.start()
    handed_back = JobCount(Kind.RELEASE, JobState.WAITING, 1)
    while handed_back not in database.read(jobs.count):
        waiting.join(0.01)
        assert waiting.is_alive()
    go_on.set()
    waiting.join(PATIENCE)
    assert database.read(jobs.count) == (handed_back,)
    assert len(handler.seen) == 2


def test_a_kind_that_has_no_handler_is_left_to_others(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    database.write(jobs.add, NewJob(Kind.PROGRAM))
    database.write(jobs.add, NewJob(Kind.RELEASE))
    runner.start()
    ended(runner, handler)
    assert [job.kind for job in handler.seen] == [Kind.RELEASE]
    assert database.read(jobs.count) == (JobCount(Kind.PROGRAM, JobState.WAITING, 1),)


def test_a_job_that_cannot_even_be_wound_up_is_left_to_its_lease(
    runner: JobRunner, handler: Scripted, database: Database
) -> None:
    def stumble(job: Job) -> None:
        raise ZeroDivisionError

    def fall(job: Job, reason: str) -> None:
        handler.expired.append(reason)
        raise ZeroDivisionError

    handler.act, handler.expire = stumble, fall  # type: ignore[method-assign]  # one case
    run_here(runner, database, limit_ms=1)
    ended(runner, handler)
    assert len(handler.expired) == 1
    assert [state for state, _error in rows(database)] == [JobState.RUNNING]


def test_a_runner_survives_a_database_that_is_away(
    database: Database, handler: Scripted
) -> None:
    broken = Database('sqlite:////nowhere/at/all.sqlite')
    handlers: dict[str, Handler] = {Kind.RELEASE: handler}
    runner = JobRunner(broken, handlers, owner_of_process(30), workers=1)
    runner.start()
    runner.stop()
    runner.wait()
