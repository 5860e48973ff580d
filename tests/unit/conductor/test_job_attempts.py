# SPDX-License-Identifier: Apache-2.0
"""One attempt: what follows is done at once, what fails is put off, death passes."""

from collections.abc import Callable

import pytest

from cyborg_lite.conductor.job_attempts import Attempts, Handler
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.db import job_table, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.drivers.kit_faults import Death
from cyborg_lite.exceptions import HostAway
from cyborg_lite.model.jobs import Job, JobState, Kind, NewJob
from tests.fakes.rows import OWNER


class Scripted:
    """Does what the test says."""

    def __init__(self, act: Callable[[Job], Job | None]) -> None:
        self.run = act

    def expire(self, job: Job, reason: str) -> Job | None:
        raise AssertionError(reason)


def attempt(database: Database, **acts: Callable[[Job], Job | None]) -> None:
    handlers: dict[str, Handler] = {
        Kind(kind.replace('_', '-')): Scripted(act) for kind, act in acts.items()
    }
    job = database.write(jobs.add_owned, NewJob(Kind.BIND), OWNER)
    Attempts(database, handlers, Metrics()).run(job)


def raising(error: BaseException) -> Callable[[Job], Job | None]:
    def act(_job: Job) -> Job | None:
        raise error

    return act


def test_what_a_job_becomes_is_done_at_once(database: Database) -> None:
    told: list[Job] = []

    def become(job: Job) -> Job | None:
        return database.write(jobs.become, job, NewJob(Kind.NOVA_EVENT, {'x': 1}))

    def tell(job: Job) -> Job | None:
        told.append(job)
        database.write(jobs.finish, job)
        return None

    attempt(database, bind=become, nova_event=tell)
    assert [job.payload for job in told] == [{'x': 1}]
    assert database.read(jobs.count) == ()


@pytest.mark.parametrize(
    ('error', 'said'),
    [
        (HostAway(host='compute-1'), 'compute-1'),
        (LookupError('secret'), 'An unexpected error, see the log.'),
    ],
)
def test_what_fails_is_put_off_with_the_reason(
    database: Database, error: Exception, said: str
) -> None:
    attempt(database, bind=raising(error))
    (record,) = database.read(job_table.listed)
    assert record.state is JobState.WAITING
    assert said in record.last_error
    assert 'secret' not in record.last_error


def test_the_end_of_the_process_is_no_failure_of_the_job(database: Database) -> None:
    with pytest.raises(Death):
        attempt(database, bind=raising(Death()))
    (record,) = database.read(job_table.listed)
    assert (record.state, record.owner) == (JobState.RUNNING, OWNER.name)
