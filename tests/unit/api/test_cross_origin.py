# SPDX-License-Identifier: Apache-2.0
"""Pages of other origins may call us where the operator allows it, and only there."""

import pytest
from oslo_middleware import cors

from cyborg_lite.api.app import assemble
from tests.fakes.conductor import FakeConductor
from tests.unit.api.conversation import Client, configuration

ORIGIN = 'https://horizon.example'


def served(origins: list[str]) -> Client:
    conf = configuration()
    conf.register_opts(cors.OPTS, 'cors')
    conf.set_override('allowed_origin', origins, 'cors')
    conductor = FakeConductor()
    return Client(conductor, assemble(conf, conductor))


@pytest.mark.parametrize('path', ['/devices', '/nothing'])
def test_an_allowed_page_reads_answers_and_errors(path: str) -> None:
    answer = served([ORIGIN]).get(path, headers={'Origin': ORIGIN})
    assert answer.headers['Access-Control-Allow-Origin'] == ORIGIN
    assert 'OpenStack-API-Version' in answer.headers['Access-Control-Expose-Headers']
    assert answer.headers['Vary'] == 'OpenStack-API-Version, Origin'


def test_a_browser_may_ask_before_it_sends() -> None:
    headers = {
        'Origin': ORIGIN,
        'Access-Control-Request-Method': 'PATCH',
        'Access-Control-Request-Headers': 'X-Auth-Token, OpenStack-API-Version',
    }
    client = served([ORIGIN]).as_({})
    answer = client.send('OPTIONS', '/accelerator_requests', headers=headers)
    assert answer.status == 200
    assert answer.headers['Access-Control-Allow-Methods'] == 'PATCH'


@pytest.mark.parametrize('origins', [[], ['https://other.example']])
def test_other_pages_may_not(origins: list[str]) -> None:
    client = served(origins)
    answer = client.get('/devices', headers={'Origin': ORIGIN})
    assert 'Access-Control-Allow-Origin' not in answer.headers
    assert answer.headers['Vary'] == 'OpenStack-API-Version'
