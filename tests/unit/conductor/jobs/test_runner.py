# SPDX-License-Identifier: Apache-2.0
"""The job runner: own jobs at once, jobs of other processes by lease."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.jobs import runner as jobs
from cyborg_lite.conductor.jobs.runner import (
    Handler,
    JobAttempts,
    JobRunner,
    Workers,
    create_owner,
)
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.jobs import InvalidJobPayload, JobLost
from cyborg_lite.model.jobs import Job, JobCount, JobRecord, JobState, NewJob, Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.testing.fault_injection import ProcessCrash
from tests.builders.rows import OWNER
from tests.doubles.job_handlers import (
    TIMEOUT,
    ScriptedHandler,
    run_owned_job,
    wait_and_stop,
)
from tests.support.sql_statements import statements
from tests.support.wall_clock import STEPS, step_wall_clock


@pytest.fixture
def handler(database: Database) -> ScriptedHandler:
    return ScriptedHandler(database)


@pytest.fixture
def runner(database: Database, handler: ScriptedHandler) -> Iterator[JobRunner]:
    handlers: dict[str, Handler] = {
        OperationKind.BIND: handler,
        OperationKind.RELEASE: handler,
        OperationKind.NOVA_EVENT: handler,
    }
    owner = create_owner(lease_seconds=30)
    runner = JobRunner(database, handlers, owner, workers=Workers(2, 2))
    yield runner
    runner.stop()
    runner.wait()


def rows(database: Database) -> list[tuple[str, str]]:
    return database.read(_rows)


def _rows(session: Session) -> list[tuple[str, str]]:
    statement = select(Row.state, Row.last_error).order_by(Row.id)
    return [(state, error) for state, error in session.execute(statement)]


def test_runner_leases_waiting_job(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    database.write(queue.add_job, NewJob(OperationKind.RELEASE, request_id='req-1'))
    runner.start()
    wait_and_stop(runner, handler)
    assert [job.request_id for job in handler.jobs] == ['req-1']
    assert rows(database) == []


def test_runner_leases_no_job_before_check(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    answers: list[Any] = [True, HostAway(host='no database'), False]

    def check() -> bool:
        assert handler.jobs == []
        with runner.reserve_worker('cpu1') as owner:
            assert owner is None
        runner.wake()
        answer = answers.pop()
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    runner.start(check)
    wait_and_stop(runner, handler)
    assert (answers, len(handler.jobs)) == ([], 1)


def test_runner_fails_late_binds_before_check(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    """No agent says what it remembers, but Nova waits for the bind."""
    for limit in (-1, 60_000):
        new = NewJob(OperationKind.BIND, limit_ms=limit, host='cpu1')
        database.write(queue.add_job, new)
    runner.start(lambda: False)
    wait_and_stop(runner, handler)
    assert (len(handler.expired), handler.jobs) == (1, [])


def test_runner_checks_database_after_its_failure(
    runner: JobRunner,
    handler: ScriptedHandler,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    lease_jobs = queue.lease_jobs
    checks: list[int] = []

    def fail(*_arguments: Any) -> tuple[Job, ...]:
        monkeypatch.setattr(queue, 'lease_jobs', lease_jobs)
        raise HostAway(host='no database')

    def check() -> bool:
        checks.append(len(handler.jobs))
        return True

    monkeypatch.setattr(queue, 'lease_jobs', fail)
    runner.start(check)
    wait_and_stop(runner, handler)
    assert checks == [0, 0]


def test_runner_starts_job_after_clock_was_set_back(
    database: Database, handler: ScriptedHandler, caplog: pytest.LogCaptureFixture
) -> None:
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    later = Row.run_after + 2 * queue.LONGEST_WAIT_MS
    database.write(lambda session: session.execute(update(Row).values(run_after=later)))
    owner = create_owner(lease_seconds=0.3)
    runner = JobRunner(database, {OperationKind.RELEASE: handler}, owner, Workers(2, 2))
    runner.start()
    wait_and_stop(runner, handler)
    assert rows(database) == []
    assert 'was set back; 1 waiting job can run now' in caplog.text


def test_runner_polls_once_for_single_job(
    database: Database, handler: ScriptedHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, '_POLL_INTERVAL', TIMEOUT)
    handlers: dict[str, Handler] = {OperationKind.NOVA_EVENT: handler}
    runner = JobRunner(database, handlers, create_owner(30), Workers(2, 2))
    database.write(queue.add_job, NewJob(OperationKind.NOVA_EVENT))
    with statements(database) as sql:
        runner.start()
        wait_and_stop(runner, handler)
    reads = [text for text in sql if text.startswith('SELECT jobs.')]
    # Jobs that are due, jobs whose lease has ended, and their operations.
    assert len(reads) == 3


def test_runner_wake_during_poll_causes_another(
    database: Database, handler: ScriptedHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, '_POLL_INTERVAL', TIMEOUT)
    handlers: dict[str, Handler] = {OperationKind.NOVA_EVENT: handler}
    runner = JobRunner(database, handlers, create_owner(30), Workers(2, 2))
    lease_jobs = queue.lease_jobs

    def lease_and_add(session: Session, *arguments: Any) -> tuple[Job, ...]:
        monkeypatch.setattr(queue, 'lease_jobs', lease_jobs)
        leased = lease_jobs(session, *arguments)
        queue.add_job(session, NewJob(OperationKind.NOVA_EVENT))
        runner.wake()
        return leased

    monkeypatch.setattr(queue, 'lease_jobs', lease_and_add)
    runner.start()
    wait_and_stop(runner, handler)
    assert rows(database) == []


def test_runner_takes_over_expired_lease(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    crashed_owner = Owner('conductor:dead', 30_000)
    job = database.write(
        queue.add_running_job, NewJob(OperationKind.RELEASE), crashed_owner
    )
    database.write(queue.record_job_step, job, 'half-way')
    database.write(lambda s: s.execute(update(Row).values(lease_until=0)))
    runner.start()
    wait_and_stop(runner, handler)
    assert [job.step for job in handler.jobs] == ['half-way']
    assert rows(database) == []


def test_runner_runs_replacement_job(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    def become(job: Job) -> Job | None:
        if job.type == OperationKind.NOVA_EVENT:
            handler.finish(job)
            return None
        return database.write(queue.replace_job, job, NewJob(OperationKind.NOVA_EVENT))

    handler.act = become
    run_owned_job(runner, database)
    wait_and_stop(runner, handler)
    assert [job.type for job in handler.jobs] == [
        OperationKind.RELEASE,
        OperationKind.NOVA_EVENT,
    ]
    assert rows(database) == []


def raising(error: BaseException) -> Callable[[Job], Job | None]:
    def act(_job: Job) -> Job | None:
        raise error

    return act


def attempt(
    database: Database, handler: ScriptedHandler, error: BaseException
) -> JobRecord:
    """Run a job whose handler raises an error; return the row."""
    handler.act = raising(error)
    job = database.write(queue.add_running_job, NewJob(OperationKind.RELEASE), OWNER)
    JobAttempts(database, {OperationKind.RELEASE: handler}, Metrics()).run(job)
    (record,) = database.read(administration.list_jobs)
    return record


@pytest.mark.parametrize(
    ('error', 'state', 'reason'),
    [
        (HostAway(host='cpu1'), JobState.WAITING, 'cpu1 does not answer'),
        (LookupError('secret'), JobState.WAITING, 'Unexpected error; see the log'),
        (
            InvalidJobPayload(type='bind', reason='arqs is missing'),
            JobState.FAILED,
            'arqs is missing',
        ),
        (JobLost(job='j'), JobState.RUNNING, ''),
    ],
)
def test_attempt_with_error_leaves_job_with_reason(
    database: Database,
    handler: ScriptedHandler,
    error: Exception,
    state: JobState,
    reason: str,
) -> None:
    record = attempt(database, handler, error)
    assert record.state is state
    assert reason in record.last_error
    assert 'secret' not in record.last_error


def test_attempt_process_exit_leaves_job_running(
    database: Database, handler: ScriptedHandler
) -> None:
    with pytest.raises(ProcessCrash):
        attempt(database, handler, ProcessCrash())
    (record,) = database.read(administration.list_jobs)
    assert (record.state, record.owner) == (JobState.RUNNING, OWNER.name)


def test_job_overdue_is_expired(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    handler.act = raising(HostAway(host='compute-1'))
    run_owned_job(runner, database, limit_ms=1)
    wait_and_stop(runner, handler)
    assert handler.expired == ['The agent of host compute-1 does not answer.']
    assert rows(database) == []


def test_job_cancelled_is_expired_without_run(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    (job,) = database.read(administration.list_jobs)
    database.write(administration.cancel_job, job.uuid)
    runner.start()
    wait_and_stop(runner, handler)
    assert handler.jobs == []
    assert handler.expired == ['An operator cancelled the job.']
    assert rows(database) == []


def test_job_cancelled_while_running_is_expired(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    def cancel(job: Job) -> None:
        database.write(administration.cancel_job, job.uuid)
        raise HostAway(host='compute-1')

    handler.act = cancel
    run_owned_job(runner, database)
    wait_and_stop(runner, handler)
    assert handler.expired == ['An operator cancelled the job.']


def test_wait_completes_running_job(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(job: Job) -> None:
        started.set()
        assert go_on.wait(TIMEOUT)
        handler.finish(job)

    handler.act = slow
    run_owned_job(runner, database)
    assert started.wait(TIMEOUT)
    runner.stop()
    go_on.set()
    runner.wait()
    assert rows(database) == []


def test_wait_returns_jobs_not_started(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    started, go_on = threading.Semaphore(0), threading.Event()

    def slow(job: Job) -> None:
        started.release()
        assert go_on.wait(TIMEOUT)
        handler.finish(job)

    handler.act = slow
    runner.start()
    for _ in range(3):  # one more than there are workers
        new = NewJob(OperationKind.RELEASE)
        runner.run(database.write(queue.add_running_job, new, runner.owner))
    for _ in range(2):
        assert started.acquire(timeout=TIMEOUT)
    runner.stop()
    waiting = threading.Thread(target=runner.wait)
    waiting.start()
    handed_back = JobCount(OperationKind.RELEASE, JobState.WAITING, 1)
    while handed_back not in database.read(queue.count_jobs):
        waiting.join(0.01)
        assert waiting.is_alive()
    go_on.set()
    waiting.join(TIMEOUT)
    assert database.read(queue.count_jobs) == (handed_back,)
    assert len(handler.jobs) == 2


def test_runner_ignores_job_type_without_handler(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    database.write(queue.add_job, NewJob(OperationKind.PROGRAM))
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    runner.start()
    wait_and_stop(runner, handler)
    assert [job.type for job in handler.jobs] == [OperationKind.RELEASE]
    assert database.read(queue.count_jobs) == (
        JobCount(OperationKind.PROGRAM, JobState.WAITING, 1),
    )


def test_job_expire_failed_keeps_lease(
    runner: JobRunner, handler: ScriptedHandler, database: Database
) -> None:
    def fall(job: Job, reason: str) -> None:
        handler.expired.append(reason)
        raise ZeroDivisionError

    handler.act = raising(ZeroDivisionError())
    handler.expire = fall  # type: ignore[method-assign]  # one case
    run_owned_job(runner, database, limit_ms=1)
    wait_and_stop(runner, handler)
    assert len(handler.expired) == 1
    assert [state for state, _error in rows(database)] == [JobState.RUNNING]


def test_runner_database_down_continues(
    database: Database, handler: ScriptedHandler
) -> None:
    broken = Database('sqlite:////nowhere/at/all.sqlite')
    handlers: dict[str, Handler] = {OperationKind.RELEASE: handler}
    runner = JobRunner(broken, handlers, create_owner(30), workers=Workers(1, 1))
    runner.start()
    runner.stop()
    runner.wait()


@pytest.mark.parametrize('step', STEPS)
def test_runner_wall_clock_step_keeps_leases(
    runner: JobRunner,
    handler: ScriptedHandler,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    step: float,
) -> None:
    owner = Owner('conductor:second', 30_000)
    database.write(queue.add_running_job, NewJob(OperationKind.NOVA_EVENT), owner)
    step_wall_clock(monkeypatch, step)
    run_owned_job(runner, database, limit_ms=30_000)
    wait_and_stop(runner, handler)
    assert handler.expired == []
    assert [state for state, _error in rows(database)] == ['running']
