# SPDX-License-Identifier: Apache-2.0
"""A service whose bus is away says so, and does not keep its clients waiting."""

import socket
from collections.abc import Iterator

import pytest
from oslo_config import cfg
from oslo_messaging.rpc import client as rpc_client

from cyborg_lite.api import errors
from cyborg_lite.api.app import assemble
from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.conductor import ConductorAPI
from tests.unit.api.conversation import Client, configuration


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port on which nobody listens, kept free of others."""
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        yield taken.getsockname()[1]


@pytest.fixture
def away(nobody: int) -> Iterator[ConductorAPI]:
    """The conductor behind a broker that is not there."""
    conf = cfg.ConfigOpts()
    conf([])
    transport.address(conf)
    conf.set_override('transport_url', f'rabbit://user:secret@127.0.0.1:{nobody}/')
    connected = transport.connect(conf)
    # Far longer than a test may take: who waits for this, waits.
    conf.register_opts(rpc_client._client_opts)
    conf.set_override('rpc_response_timeout', 3600)
    yield ConductorAPI(connected)
    connected.cleanup()


def test_a_broker_that_is_away_is_an_answer_and_no_wait(away: ConductorAPI) -> None:
    client = Client(application=assemble(configuration(), away))
    for path in ('/devices', '/accelerator_requests', '/device_profiles'):
        answer = client.get(path)
        assert answer.status == 503
        assert answer.headers['Retry-After'] == str(errors.RETRY_AFTER)
        assert b'secret' not in answer.body
        assert b'127.0.0.1' not in answer.body


def test_whatever_is_away_says_when_to_come_back(client: Client) -> None:
    client.conductor.refusal = ServiceUnavailable(what='The database')
    answer = client.get('/devices')
    assert answer.status == 503
    assert answer.headers['Retry-After'] == str(errors.RETRY_AFTER)
    assert 'The database' in answer.fault
