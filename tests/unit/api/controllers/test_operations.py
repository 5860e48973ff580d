# SPDX-License-Identifier: Apache-2.0
"""Tests of operations since 2.7, and of programming jobs before."""

from dataclasses import replace

import pytest

from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.db.jobs.queue import read_payload
from cyborg_lite.errors.arqs import NoFreeHandle
from cyborg_lite.errors.devices import DeployableInUse
from cyborg_lite.errors.registry import describe_code, find_code
from cyborg_lite.model.jobs import AuditPayload, NewJob
from cyborg_lite.model.operations import (
    NewOperation,
    Operation,
    OperationKind,
    OperationState,
    SubjectType,
)
from tests.builders.device_rows import add_deployable
from tests.builders.job_records import build_operation
from tests.builders.patches import IMAGE, build_program_patch
from tests.builders.rows import OWNER
from tests.builders.service_rows import record_heartbeat
from tests.support.api.conversation import HOST, MEMBER, Client

JOB = '9c2a477a-d3d4-426a-9e9c-b2660917780e'
SECRET = 'Driver error in /dev/vfio/7 on compute-1.'


@pytest.fixture
def old(client: Client) -> Client:
    return client.at('2.4')


# --- programming ----------------------------------------------------------------------


def start_programming(client: Client, deployable: str) -> Operation:
    """Have the conductor start an operation for each call, and show it."""
    operation = build_operation(
        OperationKind.PROGRAM,
        uuid=JOB,
        subject_id=deployable,
        parameters={'image_uuid': IMAGE},
    )
    answers = {'start_programming': operation, 'list_operations': (operation,)}
    client.conductor.answers |= answers
    return operation


@pytest.mark.parametrize('form', ['{0}/program', '{0}/program/{0}'])
def test_program_since_2_4_returns_job(old: Client, form: str) -> None:
    uuid = add_deployable(old.conductor.database).uuid
    start_programming(old, uuid)
    answer = old.patch(f'/deployables/{form.format(uuid)}', build_program_patch())
    assert (answer.status, answer.headers.get('Location')) == (202, None)
    assert old.conductor.list_arguments('start_programming', 'uuid') == [uuid]
    assert old.conductor.list_arguments('start_programming', 'image_uuid') == [IMAGE]
    assert answer.json == {
        'uuid': JOB,
        'deployable_uuid': uuid,
        'image_uuid': IMAGE,
        'state': 'running',
        'step': 'accepted',
        'progress': 0,
        'reason': None,
        'links': [{'href': f'{HOST}/v2/jobs/{JOB}', 'rel': 'self'}],
        'created_at': '2026-11-21T05:53:43+00:00',
        'updated_at': None,
    }
    assert old.get(f'/jobs/{JOB}').json == answer.json


@pytest.mark.parametrize(
    ('fields', 'values'),
    [
        ({'state': OperationState.SUCCEEDED}, ('done', 'loaded', None)),
        (
            {
                'state': OperationState.FAILED,
                'reason': 'CRC error',
                'steps': ({'name': 'loading', 'at': '', 'reason': ''},),
            },
            ('failed', 'loading', 'CRC error'),
        ),
        (
            {
                'state': OperationState.WAITING,
                'reason': SECRET,
                'steps': ({'name': 'accepted', 'at': '', 'reason': 'No answer.'},),
            },
            ('running', 'accepted', 'No answer.'),
        ),
    ],
)
def test_job_shows_state_in_words_of_2_4(
    old: Client, fields: dict[str, object], values: tuple[str | None, ...]
) -> None:
    operation = replace(start_programming(old, IMAGE), **fields)  # type: ignore[arg-type]  # fields of any type
    old.conductor.answers['list_operations'] = (operation,)
    job = old.get(f'/jobs/{JOB}').json
    assert tuple(job[name] for name in ('state', 'step', 'reason')) == values


def test_program_bound_deployable_returns_409(old: Client) -> None:
    uuid = add_deployable(old.conductor.database).uuid
    old.conductor.refusal = DeployableInUse(uuid=uuid, reason='it is bound.')
    answer = old.patch(f'/deployables/{uuid}/program', build_program_patch())
    assert answer.status == 409


def test_program_since_2_7_returns_operation(newest: Client) -> None:
    uuid = add_deployable(newest.conductor.database).uuid
    start_programming(newest, uuid)
    answer = newest.patch(f'/deployables/{uuid}/program', build_program_patch())
    assert answer.headers['Location'] == f'{HOST}/v2/operations/{JOB}'
    assert answer.json['subject'] == {'kind': 'deployable', 'id': uuid}
    assert answer.json['parameters'] == {'image_uuid': IMAGE}
    assert answer.json['links'] == [
        {'href': f'{HOST}/v2/operations/{JOB}', 'rel': 'self'},
        {'href': f'{HOST}/v2/deployables/{uuid}', 'rel': 'subject'},
    ]
    assert newest.get(f'/operations/{JOB}').json == answer.json


@pytest.mark.parametrize(
    ('version', 'method', 'path', 'status'),
    [
        ('2.4', 'GET', f'/jobs/{IMAGE}?colour=red', 400),
        ('2.4', 'GET', f'/jobs/{IMAGE}/steps', 404),
        ('2.7', 'GET', f'/operations/{IMAGE}?wait=61', 400),
        ('2.7', 'GET', f'/operations/{IMAGE}?wait=-1', 400),
    ],
)
def test_other_path_or_method_is_refused(
    client: Client, version: str, method: str, path: str, status: int
) -> None:
    assert client.at(version).send(method, path, None).status == status


# --- all kinds ------------------------------------------------------------------------


def add_operation(
    client: Client, kind: OperationKind = OperationKind.AUDIT, *, fails: bool = False
) -> str:
    """Add an operation with its job; return its uuid."""
    database, project = client.conductor.database, MEMBER['X-Project-Id']
    new = NewOperation(kind, SubjectType.INSTANCE, IMAGE, project_id=project)
    database.write(queue.add_job, NewJob(OperationKind.AUDIT, operation=new))
    if fails:
        (job,) = database.write(queue.lease_jobs, OWNER, 1)
        database.write(queue.fail_job, job, NoFreeHandle(reason=SECRET))
    return new.uuid


@pytest.mark.parametrize(
    ('query', 'indexes'),
    [
        ('', [0, 1]),
        ('kind=bind', [1]),
        ('state=failed', [0]),
        ('state=failed&kind=bind', []),
        (f'subject={IMAGE}', [0, 1]),
        ('subject=compute-1', []),
        ('limit=1', [0]),
        ('sort_dir=desc&limit=1', [1]),
    ],
)
def test_list_filters_and_pages(newest: Client, query: str, indexes: list[int]) -> None:
    uuids = [
        add_operation(newest, OperationKind.RELEASE, fails=True),
        add_operation(newest, OperationKind.BIND),
    ]
    answer = newest.get(f'/operations?{query}').json
    values = [operation['uuid'] for operation in answer['operations']]
    assert values == [uuids[index] for index in indexes]
    assert ('operations_links' in answer) is ('limit' in query)


def test_member_reads_own_operations_without_secrets(newest: Client) -> None:
    uuid = add_operation(newest, OperationKind.BIND, fails=True)
    assert newest.get(f'/operations/{uuid}').json['reason'] == SECRET
    member = newest.as_(MEMBER)
    values = member.get(f'/operations/{uuid}').json
    code = find_code(NoFreeHandle)
    assert (values['error_code'], values['reason']) == (code, describe_code(code))
    assert values['links'][1]['href'].endswith(f'requests?instance={IMAGE}')
    foreign = newest.as_({**MEMBER, 'X-Project-Id': 'f' * 32})
    assert foreign.get(f'/operations/{uuid}').status == 404
    assert foreign.get('/operations').json == {'operations': []}


@pytest.mark.parametrize(
    'body',
    [
        {'kind': 'audit'},
        {'kind': 'reconcile', 'hostname': 'c1'},
        {'kind': 'refresh', 'hostname': 'c1'},
    ],
)
def test_create_returns_operation_of_the_kind(
    newest: Client, body: dict[str, str]
) -> None:
    record_heartbeat(newest.conductor.database, 'c1')
    answer = newest.post('/operations', body)
    path = f'/operations/{answer.json["uuid"]}'
    assert (answer.status, answer.json['kind']) == (202, body['kind'])
    assert answer.headers['Location'] == f'{HOST}/v2{path}'
    assert newest.get(path).json == answer.json


@pytest.mark.parametrize(
    ('body', 'text'),
    [
        ({'kind': 'audit', 'hostname': 'c1'}, 'audit has no hostname'),
        ({'kind': 'reconcile'}, 'reconcile requires a hostname'),
        ({'kind': 'refresh', 'hostname': ''}, 'refresh requires a hostname'),
        ({'kind': 'refresh', 'hostname': 'a\0'}, 'NUL'),
        ({'kind': 'refresh', 'hostname': 'x' * 256}, 'hostname'),
        ({'kind': 'refresh', 'hostname': 'c1', 'apply': True}, 'refresh has no apply'),
        ({'kind': 'audit', 'apply': 'yes'}, 'apply'),
        ({'kind': 'bind'}, 'kind must be audit or reconcile or refresh'),
        ({}, 'lacks kind'),
    ],
)
def test_create_invalid_body_is_refused(
    newest: Client, body: dict[str, object], text: str
) -> None:
    answer = newest.post('/operations', body)
    assert answer.status == 400
    assert text in answer.fault
    assert not newest.conductor.calls


def test_create_of_applied_audit_joins_no_other(newest: Client) -> None:
    bodies: list[dict[str, object]] = [{'kind': 'audit'}] * 2
    bodies += [{'kind': 'audit', 'apply': True}]
    created = [newest.post('/operations', body).json for body in bodies]
    uuids = [operation['uuid'] for operation in created]
    assert uuids[0] == uuids[1] != uuids[2]
    assert created[2]['parameters'] == {'apply': True}
    (job,) = newest.conductor.database.write(queue.lease_jobs, OWNER, 10)
    assert read_payload(AuditPayload, job.payload).applies


def test_create_for_unknown_host_returns_404(newest: Client) -> None:
    answer = newest.post('/operations', {'kind': 'refresh', 'hostname': 'c1'})
    assert (answer.status, answer.fault) == (404, 'Host c1 not found.')


def test_retry_and_cancel_change_operation(newest: Client) -> None:
    path = f'/operations/{add_operation(newest, fails=True)}'
    answer = newest.post(f'{path}/retry')
    assert (answer.status, answer.headers['Location']) == (202, f'{HOST}/v2{path}')
    assert newest.get(path).json['state'] == 'waiting'
    assert newest.post(f'{path}/cancel', {}).status == 202
    assert newest.post(f'{path}/retry').status == 409


def test_steps_hide_reasons_from_members(newest: Client) -> None:
    uuid = add_operation(newest)
    database = newest.conductor.database
    for name, reason in (('checking', ''), ('accepted', SECRET)):
        database.write(operations.record_step, [uuid], name, 10, reason)
    path = f'/operations/{uuid}'
    for client, values in ((newest, SECRET), (newest.as_(MEMBER), describe_code(None))):
        steps = client.get(path).json['steps']
        assert [step['name'] for step in steps] == ['checking', 'accepted']
        assert [step['reason'] for step in steps] == [None, values]


def test_wait_returns_operation_after_end(newest: Client) -> None:
    uuid = add_operation(newest)
    database = newest.conductor.database
    database.write(operations.end_job, [uuid])
    assert newest.get(f'/operations/{uuid}?wait=60').json['state'] == 'succeeded'
