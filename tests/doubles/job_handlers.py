# SPDX-License-Identifier: Apache-2.0
"""Job handler whose work a test chooses."""

import threading
from collections.abc import Callable

from cyborg_lite.conductor.jobs.runner import JobRunner
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.operations import OperationKind

TIMEOUT = 10
"""Seconds until a test that waits for an event fails."""


class ScriptedHandler:
    """Handler that runs a function of the test."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.act: Callable[[Job], Job | None] = self.finish
        self.jobs: list[Job] = []
        self.expired: list[str] = []
        self.finished = threading.Event()

    def finish(self, job: Job) -> None:
        """Finish the job without work."""
        self._database.write(queue.finish_job, job)

    def run(self, job: Job) -> Job | None:
        """Record the job and run the function of the test."""
        self.jobs.append(job)
        try:
            return self.act(job)
        finally:
            self.finished.set()

    def expire(self, job: Job, reason: str) -> Job | None:
        """Record the reason and finish the job."""
        self.expired.append(reason)
        self.finish(job)
        self.finished.set()
        return None


def run_owned_job(runner: JobRunner, database: Database, **fields: int) -> None:
    """Write a job that the runner owns, and run it."""
    new = NewJob(OperationKind.RELEASE, limit_ms=fields.get('limit_ms'))
    job = database.write(queue.add_running_job, new, runner.owner)
    runner.start()
    runner.run(job)


def wait_and_stop(runner: JobRunner, handler: ScriptedHandler) -> None:
    """Wait until the handler has finished, then stop the runner."""
    assert handler.finished.wait(TIMEOUT)
    runner.stop()
    runner.wait()
