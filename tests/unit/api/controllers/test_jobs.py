# SPDX-License-Identifier: Apache-2.0
"""Tests of programming jobs since microversion 2.4, and of all jobs since 2.7."""

from datetime import UTC, datetime

import pytest

from cyborg_lite.errors.devices import DeployableInUse
from cyborg_lite.model.bitstreams.program_jobs import (
    ProgramJob,
    ProgramState,
    ProgramStep,
)
from cyborg_lite.model.jobs import JobRequest, JobRequestKind, JobState
from tests.builders.device_rows import add_deployable
from tests.builders.job_records import add_job_row, build_job_record
from tests.builders.patches import IMAGE, build_program_patch
from tests.builders.service_rows import record_heartbeat
from tests.support.api.conversation import HOST, MANAGER, Client

JOB = '9c2a477a-d3d4-426a-9e9c-b2660917780e'


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


def start_programming(client: Client, deployable: str) -> str:
    """Have the conductor start a job for each call; return its uuid."""
    states = ProgramState.RUNNING, ProgramStep.ACCEPTED
    at = datetime(2026, 11, 21, 5, 53, 43, tzinfo=UTC)
    job = ProgramJob(JOB, deployable, IMAGE, *states, '', at)
    client.conductor.answers |= {'start_programming': job, 'show_program_job': job}
    return JOB


@pytest.mark.parametrize('form', ['{0}/program', '{0}/program/{0}'])
def test_program_since_2_4_returns_job(newest: Client, form: str) -> None:
    uuid = add_deployable(newest.conductor.database).uuid
    job = start_programming(newest, uuid)
    answer = newest.patch(f'/deployables/{form.format(uuid)}', build_program_patch())
    assert answer.status == 202
    assert newest.conductor.list_arguments('start_programming', 'uuid') == [uuid]
    assert newest.conductor.list_arguments('start_programming', 'image_uuid') == [IMAGE]
    assert answer.json == {
        'uuid': job,
        'deployable_uuid': uuid,
        'image_uuid': IMAGE,
        'state': 'running',
        'step': 'accepted',
        'progress': 0,
        'reason': None,
        'links': [{'href': f'{HOST}/v2/jobs/{job}', 'rel': 'self'}],
        'created_at': '2026-11-21T05:53:43+00:00',
        'updated_at': None,
    }
    assert newest.get(f'/jobs/{job}').json == answer.json


def test_program_before_2_4_returns_deployable(client: Client) -> None:
    deployable = add_deployable(client.conductor.database)
    client.conductor.answers['program_deployable'] = deployable
    path = f'/deployables/{deployable.uuid}/program'
    answer = client.at('2.3').patch(path, build_program_patch())
    assert (answer.status, answer.json['uuid']) == (200, deployable.uuid)


def test_program_bound_deployable_returns_409(newest: Client) -> None:
    uuid = add_deployable(newest.conductor.database).uuid
    newest.conductor.refusal = DeployableInUse(uuid=uuid, reason='it is bound.')
    answer = newest.patch(f'/deployables/{uuid}/program', build_program_patch())
    assert answer.status == 409


@pytest.mark.parametrize(
    ('method', 'path', 'status'),
    [
        ('GET', f'/jobs/{IMAGE}', 404),
        ('GET', '/jobs/x', 400),
        ('GET', '/jobs', 406),
        ('DELETE', f'/jobs/{IMAGE}', 405),
        ('GET', f'/jobs/{IMAGE}?colour=red', 400),
        ('GET', f'/jobs/{IMAGE}/steps', 404),
    ],
)
def test_jobs_other_path_or_method_is_refused(
    newest: Client, method: str, path: str, status: int
) -> None:
    assert newest.send(method, path, None).status == status


def test_show_job_of_other_project_is_refused(newest: Client) -> None:
    job = start_programming(newest, IMAGE)
    assert newest.as_(MANAGER).get(f'/jobs/{job}').status == 403


def test_show_job_other_type_requires_2_7(newest: Client) -> None:
    job = add_job(newest)
    assert newest.get(f'/jobs/{job}').status == 404
    assert newest.at('2.7').get(f'/jobs/{job}').status == 200


# --- jobs of all types, since 2.7 ---


@pytest.fixture
def admin(client: Client) -> Client:
    return client.at('2.7')


def add_job(client: Client, **columns: object) -> str:
    """Add a job; return its uuid."""
    return add_job_row(client.conductor.database, **columns)


def test_list_jobs_shows_subject_and_reason(admin: Client) -> None:
    job = build_job_record(
        type='placement-sync',
        state=JobState.FAILED,
        payload={'hostname': 'compute-1', 'caller': {'user_id': 'u'}},
        last_error='Placement does not answer.',
        deadline_in=2.5,
    )
    admin.conductor.answers['list_jobs'] = (job,)
    assert admin.get('/jobs').json == {
        'jobs': [
            {
                'uuid': job.uuid,
                'kind': 'placement-sync',
                'state': 'failed',
                'subject': 'host compute-1',
                'step': None,
                'attempts': 0,
                'age': 1.5,
                'due_in': -0.5,
                'deadline_in': 2.5,
                'is_cancelled': False,
                'reason': 'Placement does not answer.',
                'request_id': None,
                'links': [{'href': f'{HOST}/v2/jobs/{job.uuid}', 'rel': 'self'}],
            }
        ]
    }
    assert admin.get(f'/jobs/{job.uuid}').json == admin.get('/jobs').json['jobs'][0]


@pytest.mark.parametrize(
    ('query', 'indexes'),
    [
        ('', [0, 1, 2]),
        ('kind=bind', [1]),
        ('state=failed', [0, 2]),
        ('state=failed&kind=bind', []),
        ('kind=nope', []),
        ('limit=2', [0, 1]),
        ('sort_dir=desc&limit=1', [2]),
    ],
)
def test_list_jobs_filters_and_pages(
    admin: Client, query: str, indexes: list[int]
) -> None:
    jobs = [
        add_job(admin, kind='release', state=JobState.FAILED),
        add_job(admin, kind='bind'),
        add_job(admin, kind='clean', state=JobState.FAILED),
    ]
    answer = admin.get(f'/jobs?{query}').json
    assert [job['uuid'] for job in answer['jobs']] == [jobs[i] for i in indexes]
    assert ('jobs_links' in answer) is ('limit' in query)


@pytest.mark.parametrize(
    ('body', 'request_'),
    [
        ({'kind': 'audit'}, JobRequest(JobRequestKind.AUDIT)),
        (
            {'kind': 'reconcile', 'hostname': 'c1'},
            JobRequest(JobRequestKind.RECONCILE, 'c1'),
        ),
        (
            {'kind': 'refresh', 'hostname': 'c1'},
            JobRequest(JobRequestKind.REFRESH, 'c1'),
        ),
    ],
)
def test_create_job_returns_it(
    admin: Client, body: dict[str, str], request_: JobRequest
) -> None:
    record_heartbeat(admin.conductor.database, 'c1')
    answer = admin.post('/jobs', body)
    assert answer.status == 202
    assert admin.conductor.list_arguments('request_job', 'request') == [request_]
    view = admin.get(f'/jobs/{answer.json["uuid"]}').json
    assert (view['kind'], view['subject']) == tuple(
        answer.json[name] for name in ('kind', 'subject')
    )


@pytest.mark.parametrize(
    ('body', 'text'),
    [
        ({'kind': 'audit', 'hostname': 'c1'}, 'audit has no hostname'),
        ({'kind': 'reconcile'}, 'reconcile requires a hostname'),
        ({'kind': 'refresh', 'hostname': ''}, 'refresh requires a hostname'),
        ({'kind': 'refresh', 'hostname': 'a\0'}, 'NUL'),
        ({'kind': 'refresh', 'hostname': 'x' * 256}, 'hostname'),
        ({'kind': 'bind'}, 'kind must be audit or reconcile or refresh'),
        ({}, 'lacks kind'),
    ],
)
def test_create_job_invalid_body_is_refused(
    admin: Client, body: dict[str, str], text: str
) -> None:
    answer = admin.post('/jobs', body)
    assert answer.status == 400
    assert text in answer.fault
    assert not admin.conductor.calls


def test_create_job_of_unknown_host_returns_404(admin: Client) -> None:
    answer = admin.post('/jobs', {'kind': 'refresh', 'hostname': 'c1'})
    assert (answer.status, answer.fault) == (404, 'Host c1 not found.')


def test_retry_and_cancel_change_job(admin: Client) -> None:
    job = add_job(admin, state=JobState.FAILED)
    assert admin.post(f'/jobs/{job}/retry').status == 202
    assert admin.get(f'/jobs/{job}').json['state'] == 'waiting'
    assert admin.post(f'/jobs/{job}/cancel', {}).status == 202
    assert admin.get(f'/jobs/{job}').json['is_cancelled'] is True
    assert admin.post(f'/jobs/{job}/retry').status == 409
    refused = add_job(admin, kind='release', state=JobState.FAILED)
    assert admin.post(f'/jobs/{refused}/cancel').status == 409


@pytest.mark.parametrize('action', ['retry', 'cancel'])
def test_action_on_unknown_job_returns_404(admin: Client, action: str) -> None:
    assert admin.post(f'/jobs/{IMAGE}/{action}').status == 404


@pytest.mark.parametrize('path', ['', '/{0}', '/{0}/retry', '/{0}/cancel'])
def test_put_is_refused(admin: Client, path: str) -> None:
    job = add_job(admin)
    assert admin.send('PUT', f'/jobs{path.format(job)}').status == 405
