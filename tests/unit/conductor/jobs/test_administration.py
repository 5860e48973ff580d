# SPDX-License-Identifier: Apache-2.0
"""Jobs that administrators request, retry and cancel."""

import pytest

from cyborg_lite.conductor.jobs.administration import JobService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.hosts import HostNotFound
from cyborg_lite.errors.jobs import JobNotFound
from cyborg_lite.model.jobs import JobRequest, JobRequestKind, NewJob
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.service_rows import record_heartbeat

CONTEXT = RequestContext(user_id='a', request_id='req-1', is_admin=True)


class Wakes:
    """Counts the wakes of the job runner."""

    def __init__(self) -> None:
        self.number = 0

    def wake(self) -> None:
        self.number += 1


@pytest.fixture
def wakes() -> Wakes:
    return Wakes()


@pytest.fixture
def jobs(database: Database, wakes: Wakes) -> JobService:
    record_heartbeat(database, 'compute-1')
    database.write(agents.store_digest, 'compute-1', 'digest', 'boot-1')
    return JobService(database, wakes.wake)


@pytest.mark.parametrize(
    ('request_', 'job_type'),
    [
        (JobRequest(JobRequestKind.AUDIT), 'audit'),
        (JobRequest(JobRequestKind.RECONCILE, 'compute-1'), 'placement-sync'),
        (JobRequest(JobRequestKind.REFRESH, 'compute-1'), 'placement-sync'),
    ],
)
def test_request_writes_job_and_wakes_runner(
    database: Database,
    jobs: JobService,
    wakes: Wakes,
    request_: JobRequest,
    job_type: str,
) -> None:
    job = jobs.request(CONTEXT, request_)
    (stored,) = jobs.list(Query())
    assert (stored.uuid, stored.type, stored.request_id) == (
        job.uuid,
        job_type,
        'req-1',
    )
    assert stored.payload.get('deep', False) is (job_type == 'placement-sync')
    (agent,) = database.read(services.list_services)
    is_refresh = request_.kind is JobRequestKind.REFRESH
    assert agent.digest == (None if is_refresh else 'digest')
    assert wakes.number == 1


def test_request_for_unknown_host_is_refused(jobs: JobService, wakes: Wakes) -> None:
    with pytest.raises(HostNotFound):
        jobs.request(CONTEXT, JobRequest(JobRequestKind.REFRESH, 'nowhere'))
    assert (jobs.list(Query()), wakes.number) == ((), 0)


def test_retry_and_cancel_wake_runner(
    database: Database, jobs: JobService, wakes: Wakes
) -> None:
    database.write(queue.add_job, NewJob('release', {'handle_uuid': 'h'}, key='h'))
    (job,) = jobs.list(Query())
    jobs.retry(CONTEXT, job.uuid)
    jobs.cancel(CONTEXT, job.uuid)
    (job,) = jobs.list(Query())
    assert (job.cancelled, wakes.number) == (True, 2)
    for change in (jobs.retry, jobs.cancel):
        with pytest.raises(JobNotFound):
            change(CONTEXT, 'nope')
