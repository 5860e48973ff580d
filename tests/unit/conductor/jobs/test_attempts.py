# SPDX-License-Identifier: Apache-2.0
"""Attempts at jobs: success, failure and exit of the process."""

from collections.abc import Callable

import pytest

from cyborg_lite import codec
from cyborg_lite.conductor.jobs.runner import Handler, JobAttempts
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.jobs import InvalidJobPayload
from cyborg_lite.model.jobs import Job, JobState, NewJob, NovaEventPayload
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.testing.fault_injection import ProcessCrash
from tests.builders.rows import OWNER

EVENT = codec.dump(NovaEventPayload('instance', ('arq',), succeeded=True))


class Scripted:
    """Handler that runs a function of the test."""

    def __init__(self, act: Callable[[Job], Job | None]) -> None:
        self.run = act

    def expire(self, job: Job, reason: str) -> Job | None:
        raise AssertionError(reason)


def attempt(database: Database, **acts: Callable[[Job], Job | None]) -> None:
    handlers: dict[str, Handler] = {
        OperationKind(kind.replace('_', '-')): Scripted(act)
        for kind, act in acts.items()
    }
    job = database.write(queue.add_running_job, NewJob(OperationKind.BIND), OWNER)
    JobAttempts(database, handlers, Metrics()).run(job)


def raising(error: BaseException) -> Callable[[Job], Job | None]:
    def act(_job: Job) -> Job | None:
        raise error

    return act


def test_attempt_runs_replacement_job(database: Database) -> None:
    jobs: list[Job] = []

    def become(job: Job) -> Job | None:
        return database.write(
            queue.replace_job, job, NewJob(OperationKind.NOVA_EVENT, EVENT)
        )

    def record(job: Job) -> Job | None:
        jobs.append(job)
        database.write(queue.finish_job, job)
        return None

    attempt(database, bind=become, nova_event=record)
    assert [job.payload for job in jobs] == [EVENT]
    assert database.read(queue.count_jobs) == ()


@pytest.mark.parametrize(
    ('error', 'reason'),
    [
        (HostAway(host='compute-1'), 'compute-1'),
        (LookupError('secret'), 'Unexpected error; see the log of the conductor.'),
    ],
)
def test_attempt_failed_is_postponed_with_reason(
    database: Database, error: Exception, reason: str
) -> None:
    attempt(database, bind=raising(error))
    (record,) = database.read(administration.list_jobs)
    assert record.state is JobState.WAITING
    assert reason in record.last_error
    assert 'secret' not in record.last_error


def test_attempt_invalid_payload_fails_job(database: Database) -> None:
    error = InvalidJobPayload(type=OperationKind.BIND, reason='arqs is missing')
    attempt(database, bind=raising(error))
    (record,) = database.read(administration.list_jobs)
    assert record.state is JobState.FAILED
    assert 'arqs is missing' in record.last_error


def test_attempt_process_exit_leaves_job_running(database: Database) -> None:
    with pytest.raises(ProcessCrash):
        attempt(database, bind=raising(ProcessCrash()))
    (record,) = database.read(administration.list_jobs)
    assert (record.state, record.owner) == (JobState.RUNNING, OWNER.name)
