# SPDX-License-Identifier: Apache-2.0
"""Operations that clients request, read, retry and cancel."""

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from sqlalchemy import delete
from sqlalchemy.orm import Session

from cyborg_lite.conductor.jobs.operations import OperationService, build_operation
from cyborg_lite.db.attention import list_attention
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import administration, operations, queue
from cyborg_lite.errors.jobs import OperationNotFound, OperationRefused
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind, SubjectType
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.rows import OWNER
from tests.builders.service_rows import record_heartbeat

CONTEXT = RequestContext(user_id='a', project_id='p', request_id='r', is_admin=True)
MEMBER = RequestContext(user_id='b', project_id='p', request_id='s')


@pytest.fixture
def wake() -> Mock:
    """Return the function that wakes the job runner."""
    return Mock()


@pytest.fixture
def service(database: Database, wake: Mock) -> OperationService:
    record_heartbeat(database, 'compute-1')
    database.write(agents.store_digest, 'compute-1', 'digest', 'boot-1')
    return OperationService(database, wake)


def test_operation_on_device_belongs_to_no_project() -> None:
    operation = build_operation(
        CONTEXT, OperationKind.CLEANING, SubjectType.DEVICE, 'd1', unit='0000:5e:00.0'
    )
    assert operation.project_id is None


def test_retry_of_job_that_has_just_ended_is_refused(
    service: OperationService, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job ends between the list of the jobs and the lock of its row."""
    uuid = service.request(CONTEXT, OperationKind.AUDIT, '').uuid

    def end_jobs(session: Session, job: str) -> bool:
        session.execute(delete(JobRow).where(JobRow.uuid == job))
        return lock(session, job)

    lock = administration.retry_job
    monkeypatch.setattr(administration, 'retry_job', end_jobs)
    with pytest.raises(OperationRefused, match='it has ended'):
        service.retry(CONTEXT, uuid)


def test_failed_job_of_service_is_retried_as_operation(
    service: OperationService, database: Database, wake: Mock
) -> None:
    """The list of what needs attention names the operation, which is kept."""
    database.write(queue.add_job, NewJob(OperationKind.SELECTORS))
    (job,) = database.write(queue.lease_jobs, OWNER, 1)
    database.write(queue.fail_job, job, 'No such selector.')
    latest = datetime(9000, 1, 1, tzinfo=UTC)
    assert database.write(operations.delete_old_operations, latest) == 0
    (item,) = database.read(list_attention)
    (operation,) = service.list(CONTEXT, Query())
    assert operation.uuid == item.subject_id
    assert item.command == f'openstack accelerator operation retry {operation.uuid}'
    with pytest.raises(OperationNotFound):
        service.retry(MEMBER, operation.uuid)
    service.retry(CONTEXT, operation.uuid)
    assert database.read(list_attention) == ()
    assert wake.call_count == 1
    assert [item.uuid for item in database.write(queue.lease_jobs, OWNER, 1)]


def test_retry_and_cancel_wake_runner(service: OperationService, wake: Mock) -> None:
    uuid = service.request(CONTEXT, OperationKind.AUDIT, '').uuid
    service.retry(CONTEXT, uuid)
    service.cancel(CONTEXT, uuid)
    assert wake.call_count == 3
    for change in (service.retry, service.cancel):
        with pytest.raises(OperationNotFound):
            change(CONTEXT, 'nope')
