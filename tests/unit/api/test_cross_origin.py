# SPDX-License-Identifier: Apache-2.0
"""Tests of CORS."""

import pytest
from oslo_middleware import cors

from cyborg_lite.api.app import assemble
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import ADMIN, Client, Headers, build_configuration

ORIGIN = 'https://horizon.example'


def build_client(origins: list[str]) -> Client:
    conf = build_configuration()
    conf.register_opts(cors.OPTS, 'cors')
    conf.set_override('allowed_origin', origins, 'cors')
    conductor = LocalConductor()
    return Client(conductor, assemble(conf, conductor.client))


@pytest.mark.parametrize(
    ('persona', 'path', 'status'),
    [(ADMIN, '/devices', 200), (ADMIN, '/nothing', 404), ({}, '/devices', 401)],
)
def test_cors_allowed_origin_reads_responses_and_errors(
    persona: Headers, path: str, status: int
) -> None:
    client = build_client([ORIGIN]).as_(persona)
    answer = client.get(path, headers={'Origin': ORIGIN})
    assert answer.status == status
    assert answer.headers['Access-Control-Allow-Origin'] == ORIGIN
    assert 'OpenStack-API-Version' in answer.headers['Access-Control-Expose-Headers']
    assert answer.headers['Vary'] == 'OpenStack-API-Version, Origin'


def test_cors_preflight_is_answered() -> None:
    headers = {
        'Origin': ORIGIN,
        'Access-Control-Request-Method': 'PATCH',
        'Access-Control-Request-Headers': 'X-Auth-Token, OpenStack-API-Version',
    }
    client = build_client([ORIGIN]).as_({})
    answer = client.send('OPTIONS', '/accelerator_requests', headers=headers)
    assert answer.status == 200
    assert answer.headers['Access-Control-Allow-Methods'] == 'PATCH'


@pytest.mark.parametrize('origins', [[], ['https://other.example']])
def test_cors_other_origin_is_refused(origins: list[str]) -> None:
    client = build_client(origins)
    answer = client.get('/devices', headers={'Origin': ORIGIN})
    assert 'Access-Control-Allow-Origin' not in answer.headers
    assert answer.headers['Vary'] == 'OpenStack-API-Version'
