# SPDX-License-Identifier: Apache-2.0
"""The job runner, while a host does not answer or a lease has been lost."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from sqlalchemy import select

from cyborg_lite.conductor.jobs import runner as jobs
from cyborg_lite.conductor.jobs.runner import JobRunner, Workers, create_owner
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.jobs import Job, JobState, NewJob, Owner
from cyborg_lite.model.operations import OperationKind
from tests.doubles.job_handlers import TIMEOUT, ScriptedHandler

HUNG_HOST: Final = 'compute-1'
HOST: Final = 'compute-2'
WORKERS: Final = Workers(number=3, per_host=2)


class HangingHandler(ScriptedHandler):
    """Handler whose jobs of one host hang until the test ends."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.act = self._hang
        self.continue_all = threading.Event()
        self.started = threading.Semaphore(0)  # jobs of the host that hangs
        self.end = threading.Semaphore(0)

    def _hang(self, job: Job) -> None:
        if job.host == HUNG_HOST:
            self.started.release()
            assert self.continue_all.wait(TIMEOUT)
        self.finish(job)
        self.end.release()


@pytest.fixture
def handler(database: Database) -> HangingHandler:
    return HangingHandler(database)


@pytest.fixture
def runner(
    database: Database, handler: HangingHandler, monkeypatch: pytest.MonkeyPatch
) -> Iterator[JobRunner]:
    # Only a wake causes a poll in time.
    monkeypatch.setattr(jobs, '_POLL_INTERVAL', 4 * TIMEOUT)
    runner = JobRunner(
        database, {OperationKind.RELEASE: handler}, create_owner(30), WORKERS
    )
    runner.start()
    yield runner
    handler.continue_all.set()
    runner.stop()
    runner.wait()


def add_jobs(database: Database, host: str | None, number: int) -> None:
    for _ in range(number):
        database.write(queue.add_job, NewJob(OperationKind.RELEASE, host=host))


def count_jobs(database: Database) -> dict[str, int]:
    counts = database.read(queue.count_jobs)
    return {count.state: count.count for count in counts}


def test_hung_host_leaves_workers_for_other_hosts(
    runner: JobRunner, handler: HangingHandler, database: Database
) -> None:
    add_jobs(database, HUNG_HOST, 5)
    add_jobs(database, HOST, 3)
    add_jobs(database, None, 1)
    runner.wake()
    for _ in range(4):
        assert handler.end.acquire(timeout=TIMEOUT)
    assert {job.host for job in handler.jobs} == {HUNG_HOST, HOST, None}
    assert count_jobs(database) == {JobState.RUNNING: 2, JobState.WAITING: 3}
    # The other jobs of the host start when the first ones end.
    handler.continue_all.set()
    for _ in range(5):
        assert handler.end.acquire(timeout=TIMEOUT)


@pytest.mark.parametrize('is_refused', [False, True])
def test_end_of_job_wakes_runner_if_others_wait(
    database: Database,
    handler: HangingHandler,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_refused: bool,
) -> None:
    runner = JobRunner(
        database, {OperationKind.RELEASE: handler}, create_owner(30), WORKERS
    )
    woken = threading.Event()
    monkeypatch.setattr(runner, 'wake', woken.set)
    new = NewJob(OperationKind.RELEASE, host=HUNG_HOST)
    for _ in range(WORKERS.per_host):
        runner.run(database.write(queue.add_running_job, new, runner.owner))
        assert handler.started.acquire(timeout=TIMEOUT)
    if is_refused:
        with runner.reserve_worker(HUNG_HOST) as owner:
            assert owner is None
    handler.continue_all.set()
    for _ in range(WORKERS.per_host):
        assert handler.end.acquire(timeout=TIMEOUT)
    runner.stop()
    runner.wait()
    assert woken.is_set() is is_refused


def test_jobs_over_share_are_left_to_other_conductors(
    runner: JobRunner, handler: HangingHandler, database: Database
) -> None:
    add_jobs(database, HUNG_HOST, 3)
    runner.wake()
    for _ in range(2):
        assert handler.started.acquire(timeout=TIMEOUT)
    idle = Owner('conductor:idle', 30_000)
    (job,) = database.write(queue.lease_jobs, idle, 10)
    assert job.host == HUNG_HOST


def test_reserve_worker_of_full_host_yields_no_owner(
    runner: JobRunner, handler: HangingHandler, database: Database
) -> None:
    add_jobs(database, HUNG_HOST, 2)
    runner.wake()
    for _ in range(2):
        assert handler.started.acquire(timeout=TIMEOUT)
    with runner.reserve_worker(HUNG_HOST) as owner:
        assert owner is None
    with runner.reserve_worker(HOST) as first, runner.reserve_worker(HOST) as second:
        assert first is runner.owner
        assert second is None  # all three workers are occupied
    with runner.reserve_worker(HOST) as owner:
        assert owner is runner.owner


def test_end_of_old_attempt_keeps_renewal_of_new_one(
    database: Database, handler: HangingHandler
) -> None:
    owner = create_owner(0.3)
    new = NewJob(OperationKind.RELEASE, host=HUNG_HOST)
    job = database.write(queue.add_running_job, new, owner)
    runner = JobRunner(database, {OperationKind.RELEASE: handler}, owner, WORKERS)
    ends_first = threading.Event()

    def hang(job: Job) -> None:
        handler.started.release()
        event = ends_first if job.lease == 1 else handler.continue_all
        assert event.wait(TIMEOUT)
        handler.end.release()

    handler.act = hang
    runner.run(job)
    runner.run(replace(job, lease=2))
    for _ in range(2):
        assert handler.started.acquire(timeout=TIMEOUT)
    runner.start()
    ends_first.set()
    assert handler.end.acquire(timeout=TIMEOUT)
    # Two renewals after the end of the old attempt.
    for _ in range(2):
        _wait_for_renewal(database)
    handler.continue_all.set()
    runner.stop()
    runner.wait()


def _wait_for_renewal(database: Database) -> None:
    query = select(Row.lease_until)
    before = database.read(lambda session: session.scalar(query))
    deadline = time.monotonic() + TIMEOUT
    while database.read(lambda session: session.scalar(query)) == before:
        assert time.monotonic() < deadline, 'the lease is not renewed'
        time.sleep(0.02)
