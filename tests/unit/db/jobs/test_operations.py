# SPDX-License-Identifier: Apache-2.0
"""Operations from the request to the end of their last job."""

from dataclasses import replace

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.jobs import administration, operations, queue
from cyborg_lite.errors.arqs import NoFreeHandle
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.jobs import JobLost, OperationRefused
from cyborg_lite.model.jobs import Job, JobType, NewJob
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
    return NewJob(JobType.AUDIT, key=key, operation=operation)


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


def test_operation_follows_job_to_its_end(database: Database) -> None:
    add_job(database)
    first = read(database)
    assert (first.state, first.started_at, first.progress) == ('waiting', None, 0)
    (job,) = lease(database)
    running = read(database)
    assert (running.state, running.ended_at) == ('running', None)
    assert running.started_at is not None
    database.write(queue.finish_job, job)
    last = read(database)
    assert (last.state, last.progress, last.reason) == ('succeeded', 100, '')
    assert last.ended_at is not None


@pytest.mark.parametrize('end', [queue.finish_job, queue.fail_job])
@pytest.mark.parametrize(
    ('is_cancelled', 'state'), [(False, 'failed'), (True, 'cancelled')]
)
def test_operation_of_failed_job_has_reason_and_code(
    database: Database, end: object, is_cancelled: bool, state: str
) -> None:
    add_job(database)
    (job,) = lease(database)
    error = NoFreeHandle(reason='No unit of host c1 is free.')
    database.write(end, replace(job, cancelled=is_cancelled), error)  # type: ignore[arg-type]  # two functions
    last = read(database)
    assert (last.state, last.reason) == (state, error.text)
    assert last.error_code == 'cyborg_lite.arq.no_free_handle'


def test_operation_of_replaced_job_ends_before_replacement(database: Database) -> None:
    job = database.write(queue.add_running_job, build_job(AUDIT), OWNER)
    assert read(database).state == 'running'
    following = database.write(queue.replace_job, job, NewJob(JobType.NOVA_EVENT))
    assert (following.operations, read(database).state) == ((), 'succeeded')


def test_delay_is_reason_until_success(database: Database) -> None:
    add_job(database)
    (job,) = lease(database)
    database.write(queue.postpone_job, job, 0, InvalidInput(reason='Not yet.'))
    delayed = read(database)
    assert (delayed.state, delayed.reason) == ('waiting', 'Not yet.')
    assert delayed.error_code == 'cyborg_lite.request.invalid_input'
    (job,) = lease(database)
    database.write(queue.finish_job, job)
    last = read(database)
    assert (last.state, last.reason, last.error_code) == ('succeeded', '', None)


def test_lost_lease_leaves_operation_unchanged(database: Database) -> None:
    add_job(database)
    (job,) = lease(database)
    for end in (queue.finish_job, queue.fail_job):
        with pytest.raises(JobLost):
            database.write(end, replace(job, lease=9), 'late')
    assert read(database).state == 'running'


@pytest.mark.parametrize('fails_first', [True, False])
def test_operation_of_two_jobs_ends_with_the_last(
    database: Database, fails_first: bool
) -> None:
    add_job(database, key='h1')
    add_job(database, key='h2')
    first, second = lease(database)
    database.write(queue.finish_job, first, 'A fan.' if fails_first else None)
    assert (read(database).state, read(database).progress) == ('running', 50)
    database.write(queue.finish_job, second, None if fails_first else 'A fan.')
    assert (read(database).state, read(database).reason) == ('failed', 'A fan.')


def test_operations_share_job_of_one_key(database: Database) -> None:
    add_job(database, key='h1')
    add_job(database, RELEASE, key='h1')
    (job,) = lease(database)
    assert job.operations == (AUDIT.uuid, RELEASE.uuid)
    database.write(queue.finish_job, job)
    assert read_states(database, AUDIT, RELEASE) == ['succeeded', 'succeeded']


def test_operation_added_while_job_runs_waits_for_next_run(database: Database) -> None:
    add_job(database, key='h1')
    (job,) = lease(database)
    add_job(database, RELEASE, key='h1')
    database.write(queue.finish_job, job)
    assert read_states(database, AUDIT, RELEASE) == ['running', 'waiting']
    (job,) = lease(database)
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


@pytest.mark.parametrize(
    ('kind', 'advice'),
    [
        (OperationKind.BIND, 'Nova has given up the server'),
        (OperationKind.PROGRAM, 'Program the deployable'),
        (OperationKind.CONFIGURATION, 'Configure the device'),
        (OperationKind.CLEANING, 'Retry the cleaning'),
    ],
)
def test_retry_without_job_names_request_to_repeat(
    database: Database, kind: OperationKind, advice: str
) -> None:
    add_job(database, replace(AUDIT, kind=kind))
    (job,) = lease(database)
    database.write(queue.finish_job, job, 'A fan.')
    with pytest.raises(OperationRefused, match=advice):
        database.write(administration.retry_operation, AUDIT.uuid)


def test_cancel_ends_waiting_job_of_operation(database: Database) -> None:
    add_job(database)
    add_job(database, RELEASE)
    database.write(administration.cancel_operation, AUDIT.uuid)
    cancelled = {job.operations: job.cancelled for job in lease(database)}
    assert cancelled == {(AUDIT.uuid,): True, (RELEASE.uuid,): False}


@pytest.mark.parametrize(
    ('job_type', 'kind'),
    [(JobType.PLACEMENT_SYNC, 'reconcile'), ('of-next-release', 'of-next-release')],
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


def test_list_operations_filters_by_scope_and_subject(database: Database) -> None:
    add_job(database)
    add_job(database, RELEASE)

    def list_uuids(project: str | None, **filters: tuple[str, ...]) -> list[str]:
        query = Query(filters=filters)
        page = database.read(operations.list_operations, query, project)
        return [operation.uuid for operation in page]

    assert list_uuids(None) == [AUDIT.uuid, RELEASE.uuid]
    assert list_uuids('p1') == [RELEASE.uuid]
    assert list_uuids('') == []
    assert list_uuids(None, kind=('audit',)) == [AUDIT.uuid]
    assert list_uuids(None, subject=('i1',), state=('waiting',)) == [RELEASE.uuid]
    # The marker of an operation of another project is unknown.
    query = Query(marker=AUDIT.uuid, limit=1)
    with pytest.raises(InvalidInput, match='marker'):
        database.read(operations.list_operations, query, 'p1')
