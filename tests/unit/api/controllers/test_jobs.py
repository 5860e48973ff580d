# SPDX-License-Identifier: Apache-2.0
"""Tests of programming jobs, since microversion 2.4."""

import pytest

from cyborg_lite.exceptions import DeployableInUse
from tests.builders.patches import IMAGE, build_program_patch
from tests.support.api.conversation import HOST, MANAGER, Client, add_deployable


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


@pytest.mark.parametrize('form', ['{0}/program', '{0}/program/{0}'])
def test_program_since_2_4_returns_job(newest: Client, form: str) -> None:
    uuid = add_deployable(newest.conductor).uuid
    answer = newest.patch(f'/deployables/{form.format(uuid)}', build_program_patch())
    assert answer.status == 202
    job = answer.json['uuid']
    assert answer.json == {
        'uuid': job,
        'deployable_uuid': uuid,
        'image_uuid': IMAGE,
        'state': 'running',
        'step': 'accepted',
        'progress': 0,
        'reason': None,
        'links': [{'href': f'{HOST}/v2/jobs/{job}', 'rel': 'self'}],
        'created_at': answer.json['created_at'],
        'updated_at': None,
    }
    assert newest.get(f'/jobs/{job}').json == answer.json


def test_program_before_2_4_returns_deployable(client: Client) -> None:
    uuid = add_deployable(client.conductor).uuid
    answer = client.at('2.3').patch(
        f'/deployables/{uuid}/program', build_program_patch()
    )
    assert (answer.status, answer.json['uuid']) == (200, uuid)
    assert client.conductor.jobs == {}


def test_program_bound_deployable_returns_409(newest: Client) -> None:
    uuid = add_deployable(newest.conductor).uuid
    newest.conductor.refusal = DeployableInUse(uuid=uuid, reason='it is bound.')
    answer = newest.patch(f'/deployables/{uuid}/program', build_program_patch())
    assert answer.status == 409


@pytest.mark.parametrize(
    ('method', 'path', 'status'),
    [
        ('GET', f'/jobs/{IMAGE}', 404),
        ('GET', '/jobs/x', 400),
        ('GET', '/jobs', 405),
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
    uuid = add_deployable(newest.conductor).uuid
    job = newest.patch(f'/deployables/{uuid}/program', build_program_patch()).json[
        'uuid'
    ]
    assert newest.as_(MANAGER).get(f'/jobs/{job}').status == 403
    assert newest.at('2.3').get(f'/jobs/{job}').status == 406
