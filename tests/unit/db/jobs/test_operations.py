# SPDX-License-Identifier: Apache-2.0
"""Operations from the request to the end of their last job."""

from dataclasses import replace

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.jobs import administration, operations, queue
from cyborg_lite.errors.jobs import JobLost, OperationNotFound, OperationRefused
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.operations import (
    NewOperation,
    Operation,
    OperationKind,
    SubjectType,
)
from cyborg_lite.model.queries import Query
from tests.builders.rows import OWNER

AUDIT = NewOperation(OperationKind.AUDIT, uuid='a' * 36)
RELEASE = NewOperation(
    OperationKind.RELEASE, SubjectType.INSTANCE, 'i1', project_id='p1', uuid='b' * 36
)


def build_job(operation: NewOperation | None, key: str | None = None) -> NewJob:
    return NewJob(OperationKind.AUDIT, key=key, operation=operation)


def add_job(
    database: Database, operation: NewOperation | None = AUDIT, key: str | None = None
) -> None:
    database.write(queue.add_job, build_job(operation, key))


def lease(database: Database) -> list[Job]:
    return list(database.write(queue.lease_jobs, OWNER, 10))


def read(database: Database, new: NewOperation = AUDIT) -> Operation:
    return database.read(operations.read_operation, new.uuid)


def read_states(database: Database, *news: NewOperation) -> list[str]:
    return [read(database, new).state.value for new in news]


def test_operation_of_replaced_job_ends_before_replacement(database: Database) -> None:
    job = database.write(queue.add_running_job, build_job(AUDIT), OWNER)
    assert read(database).state == 'running'
    following = database.write(queue.replace_job, job, NewJob(OperationKind.NOVA_EVENT))
    assert (following.operations, read(database).state) == ((), 'succeeded')


def test_lost_lease_leaves_operation_unchanged(database: Database) -> None:
    add_job(database)
    (job,) = lease(database)
    for end in (queue.finish_job, queue.fail_job):
        with pytest.raises(JobLost):
            database.write(end, replace(job, lease=9), 'late')
    assert read(database).state == 'running'


def test_operations_share_job_of_one_key(database: Database) -> None:
    add_job(database, key='h1')
    add_job(database, RELEASE, key='h1')
    (job,) = lease(database)
    assert job.operations == (AUDIT.uuid, RELEASE.uuid)
    database.write(queue.finish_job, job)
    assert read_states(database, AUDIT, RELEASE) == ['succeeded', 'succeeded']


def test_operation_added_while_job_runs_fails_with_it(database: Database) -> None:
    add_job(database, key='h1')
    (job,) = lease(database)
    add_job(database, RELEASE, key='h1')
    database.write(queue.fail_job, job, 'A fan.')
    assert read_states(database, AUDIT, RELEASE) == ['failed', 'failed']


def test_retry_reopens_failed_operation(database: Database) -> None:
    add_job(database)
    (job,) = lease(database)
    database.write(queue.fail_job, job, 'A fan.')
    database.write(administration.retry_operation, AUDIT.uuid)
    reopened = read(database)
    assert (reopened.state, reopened.ended_at) == ('waiting', None)
    (job,) = lease(database)
    database.write(queue.finish_job, job)
    assert read(database).state == 'succeeded'
    for change in (administration.retry_operation, administration.cancel_operation):
        with pytest.raises(OperationRefused, match='has ended'):
            database.write(change, AUDIT.uuid)


def test_retry_names_newer_operation_with_the_same_key(database: Database) -> None:
    sync = queue.placement_sync_job('c1')
    database.write(queue.add_job, replace(sync, operation=AUDIT))
    (job,) = lease(database)
    database.write(queue.fail_job, job, 'A fan.')
    database.write(queue.add_job, replace(sync, operation=RELEASE))
    with pytest.raises(OperationRefused, match=f'operation {RELEASE.uuid}'):
        database.write(administration.retry_operation, AUDIT.uuid)
    assert read_states(database, AUDIT, RELEASE) == ['failed', 'waiting']


def test_retry_of_bind_names_request_to_repeat(database: Database) -> None:
    add_job(database, replace(AUDIT, kind=OperationKind.BIND))
    (job,) = lease(database)
    database.write(queue.finish_job, job, 'A fan.')
    with pytest.raises(OperationRefused, match='Nova has given up the server'):
        database.write(administration.retry_operation, AUDIT.uuid)


def test_retry_with_two_new_jobs_ends_with_the_last(database: Database) -> None:
    """The first attempt had one failed job of two; its figures count no more."""
    for _ in range(2):
        add_job(database)
    failed, succeeded = lease(database)
    database.write(queue.finish_job, failed, 'A fan.')
    database.write(queue.finish_job, succeeded)
    assert read(database).state == 'failed'
    for _ in range(2):
        add_job(database, replace(AUDIT, is_retry=True))
        retried = read(database)
        assert (retried.state, retried.ended_at) == ('waiting', None)
        assert retried.progress == 0
    first, second = lease(database)
    database.write(queue.finish_job, first)
    assert (read(database).state, read(database).progress) == ('running', 50)
    database.write(queue.finish_job, second)
    operation = read(database)
    assert (operation.state, operation.reason, operation.error_code) == (
        'succeeded',
        '',
        None,
    )


def test_retry_of_purged_operation_writes_nothing(database: Database) -> None:
    with pytest.raises(OperationNotFound):
        add_job(database, replace(AUDIT, is_retry=True))
    assert lease(database) == []


def test_cancel_ends_waiting_job_of_operation(database: Database) -> None:
    add_job(database)
    add_job(database, RELEASE)
    database.write(administration.cancel_operation, AUDIT.uuid)
    cancelled = {job.operations: job.cancelled for job in lease(database)}
    assert cancelled == {(AUDIT.uuid,): True, (RELEASE.uuid,): False}


@pytest.mark.parametrize(
    ('job_type', 'kind'),
    [(OperationKind.RECONCILE, 'reconcile'), ('of-next-release', 'of-next-release')],
)
def test_job_of_service_becomes_operation_after_failed_attempts(
    database: Database, job_type: str, kind: str
) -> None:
    new = NewJob(job_type, {'hostname': 'c1'}, key='c1')
    database.write(queue.add_job, new)
    for attempt in range(1, queue.SHOWN_ATTEMPTS + 2):
        (job,) = database.write(queue.lease_jobs, OWNER, 10, [job_type])
        database.write(queue.postpone_job, job, 0, 'No answer.')
        operations_of_job = database.read(operations.list_operations, Query(), None)
        assert len(operations_of_job) == (attempt >= queue.SHOWN_ATTEMPTS)
    (operation,) = operations_of_job
    assert (operation.kind, operation.subject_id) == (kind, 'c1')
    assert (operation.state, operation.reason) == ('waiting', 'No answer.')
    (job,) = database.write(queue.lease_jobs, OWNER, 10, [job_type])
    database.write(queue.finish_job, job)
    assert read(database, replace(AUDIT, uuid=operation.uuid)).state == 'succeeded'


def test_steps_are_recorded_once_in_order(database: Database) -> None:
    add_job(database)
    (job,) = lease(database)
    for name, progress in (('checking', 10), ('checking', 10), ('loading', 25)):
        database.write(operations.record_step, job.operations, name, progress)
    steps = [step['name'] for step in read(database).steps]
    assert (steps, read(database).progress) == (['checking', 'loading'], 25)


def test_jobs_of_removed_object_are_cancelled(database: Database) -> None:
    add_job(database, key='h1')
    database.write(administration.delete_jobs, JobRow.key == 'h1', 'It is gone.')
    assert (read(database).state, read(database).reason) == ('cancelled', 'It is gone.')
