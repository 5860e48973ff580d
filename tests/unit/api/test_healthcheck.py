# SPDX-License-Identifier: Apache-2.0
"""Health checks, and responses while the message bus is unreachable."""

import socket
from collections.abc import Iterator

import pytest
from oslo_config import cfg
from oslo_messaging.rpc import client as rpc_client

from cyborg_lite.api import errors
from cyborg_lite.api.app import assemble
from cyborg_lite.api.healthcheck import Readiness
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.interface import Conductor
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import Client, build_configuration

READY = '/healthcheck/ready'
NOBODY = {'X-Roles': ''}
SILENCE = {'check_database': ServiceUnavailable(what='cyborg-lite-conductor')}


@pytest.mark.parametrize('prefix', ['', '/accelerator'])
def test_ready_conductor_answers_returns_200(prefix: str) -> None:
    answer = Client(headers=NOBODY, prefix=prefix).get(READY)
    assert answer.status == 200


def test_ready_conductor_silent_returns_503_with_reason() -> None:
    client = Client(headers=NOBODY, prefix='')
    client.conductor.answers |= SILENCE
    answer = client.get(READY)
    assert answer.status == 503
    assert b'cyborg-lite-conductor does not answer' in answer.body
    # The process itself is alive.
    assert client.get('/healthcheck').status == 200


def test_readiness_is_asked_once_a_second() -> None:
    conductor, seconds = LocalConductor(), [0.0]
    readiness = Readiness(conductor.client, clock=lambda: seconds[0])
    conductor.answers |= SILENCE
    assert readiness.find_failure()
    conductor.answers.clear()
    seconds[0] = 0.5
    assert readiness.find_failure()
    seconds[0] = 1.0
    assert readiness.find_failure() is None
    assert conductor.count_calls('check_database') == 2


@pytest.fixture
def port() -> Iterator[int]:
    """Reserve a port on which no process listens."""
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        yield listener.getsockname()[1]


@pytest.fixture
def unreachable(port: int) -> Iterator[Conductor]:
    """Return a client of a conductor whose broker is unreachable."""
    conf = cfg.ConfigOpts()
    conf([])
    transport.address(conf)
    conf.set_override('transport_url', f'rabbit://user:secret@127.0.0.1:{port}/')
    connected = transport.connect(conf)
    # Much longer than the time limit of a test.
    conf.register_opts(rpc_client._client_opts)
    conf.set_override('rpc_response_timeout', 3600)
    yield connect_conductor(connected)
    connected.cleanup()


def test_broker_unreachable_returns_503_at_once(unreachable: Conductor) -> None:
    client = Client(application=assemble(build_configuration(), unreachable))
    for path in ('/devices', '/accelerator_requests', '/device_profiles'):
        answer = client.get(path)
        assert answer.status == 503
        assert answer.headers['Retry-After'] == str(errors.RETRY_AFTER)
        assert b'secret' not in answer.body
        assert b'127.0.0.1' not in answer.body
