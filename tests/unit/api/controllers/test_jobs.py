# SPDX-License-Identifier: Apache-2.0
"""Programming from 2.4 on: accepted, and then followed."""

import pytest

from cyborg_lite.exceptions import DeployableInUse
from tests.unit.api.controllers.test_deployables import IMAGE, program
from tests.unit.api.conversation import HOST, MANAGER, Client, deployable


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


@pytest.mark.parametrize('form', ['{0}/program', '{0}/program/{0}'])
def test_programming_is_accepted_and_can_be_followed(newest: Client, form: str) -> None:
    uuid = deployable(newest.conductor).uuid
    answer = newest.patch(f'/deployables/{form.format(uuid)}', program())
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


def test_older_clients_wait_for_the_deployable(client: Client) -> None:
    uuid = deployable(client.conductor).uuid
    answer = client.at('2.3').patch(f'/deployables/{uuid}/program', program())
    assert (answer.status, answer.json['uuid']) == (200, uuid)
    assert client.conductor.jobs == {}


def test_what_is_bound_is_a_conflict(newest: Client) -> None:
    uuid = deployable(newest.conductor).uuid
    newest.conductor.refusal = DeployableInUse(uuid=uuid, reason='it is bound.')
    answer = newest.patch(f'/deployables/{uuid}/program', program())
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
def test_nothing_else_is_there(
    newest: Client, method: str, path: str, status: int
) -> None:
    assert newest.send(method, path, None).status == status


def test_others_do_not_follow_it(newest: Client) -> None:
    uuid = deployable(newest.conductor).uuid
    job = newest.patch(f'/deployables/{uuid}/program', program()).json['uuid']
    assert newest.as_(MANAGER).get(f'/jobs/{job}').status == 403
    assert newest.at('2.3').get(f'/jobs/{job}').status == 406
