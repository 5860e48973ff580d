# SPDX-License-Identifier: Apache-2.0
"""Tests of the field generation and of the header If-Match, since microversion 2.5."""

from typing import Any
from uuid import uuid4

import pytest

from tests.builders.device_rows import add_device
from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import Client

STATUS = build_replace_patch(status='maintaining')
DESCRIPTION = build_replace_patch(description='x')


def create_profile(client: Client) -> str:
    return f'/device_profiles/{client.create_profile()["uuid"]}'


def create_device(client: Client) -> str:
    return f'/devices/{add_device(client.conductor.database).uuid}'


CHANGES = [
    (create_profile, 'PATCH', DESCRIPTION),
    (create_profile, 'DELETE', None),
    (create_device, 'PATCH', STATUS),
]


@pytest.mark.parametrize(('create', 'method', 'body'), CHANGES)
def test_stale_generation_is_refused(
    newest: Client, create: Any, method: str, body: Any
) -> None:
    path = create(newest)
    stale = newest.send(method, path, body, headers={'If-Match': '"1"'})
    assert (stale.status, 'is not 1' in stale.fault) == (409, True)
    answer = newest.send(method, path, body, headers={'If-Match': '"0"'})
    assert answer.status < 300


@pytest.mark.parametrize(('create', 'method', 'body'), CHANGES)
def test_any_generation_without_header_and_at_older_microversion(
    newest: Client, create: Any, method: str, body: Any
) -> None:
    older = newest.at('2.4')
    for client, header in ((older, '"9"'), (newest, '*')):
        path = create(client)
        headers = {'If-Match': header}
        assert client.send(method, path, body, headers=headers).status < 300
        if method == 'DELETE':
            path = create(client)
        assert client.send(method, path, body).status < 300
        client.delete('/device_profiles?name=dp1')


@pytest.mark.parametrize('create', [create_profile, create_device])
def test_older_microversion_has_no_generation(newest: Client, create: Any) -> None:
    path = create(newest)
    view = newest.get(path).json
    assert view.get('device_profile', view)['generation'] == 0
    view = newest.at('2.4').get(path).json
    assert 'generation' not in view.get('device_profile', view)


@pytest.mark.parametrize(
    'header',
    ['3', '', '""', 'W/"3"', '"a"', '"-1"', '"3", "4"', '"2147483648"', '"\xb3"', '"3'],
)
def test_invalid_header_is_refused(newest: Client, header: str) -> None:
    path = create_device(newest)
    answer = newest.send('PATCH', path, STATUS, headers={'If-Match': header})
    assert (answer.status, 'If-Match must be' in answer.fault) == (400, True)


def test_call_without_generation_refuses_header(newest: Client) -> None:
    path, headers = f'/accelerator_requests/{uuid4()}', {'If-Match': '"0"'}
    answer = newest.send('DELETE', path, headers=headers)
    assert (answer.status, 'does not support' in answer.fault) == (400, True)
    assert newest.get('/device_profiles', headers).status == 200
