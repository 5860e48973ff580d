# SPDX-License-Identifier: Apache-2.0
"""Short heartbeats over a real RabbitMQ, with and without an answer."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from oslo_config import cfg

from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.context import bare_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR as CALLS
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.security.signing import Signer
from tests.servers import rabbitmq

SECRET = 's' * 32
AGENT, CONDUCTOR = Peer(Role.AGENT, 'compute-1'), Peer(Role.CONDUCTOR, 'controller')
_TIMEOUT = 30.0  # seconds


class Services:
    """Services that record the tokens of the heartbeats."""

    def __init__(self) -> None:
        self.tokens: Queue[tuple[str, str]] = Queue()

    # Any: arguments that the tests do not read.
    @serves(Conductor.repeat)
    def repeat(self, host: str, token: str, *_: Any, **__: Any) -> DatabaseMark:
        self.tokens.put((host, token))
        return NO_MARK

    @serves(Conductor.repeat_without_answer)
    def repeat_without_answer(self, host: str, token: str, *_: Any, **__: Any) -> None:
        self.tokens.put((host, token))


@pytest.fixture
def agent_bus(tmp_path: Path) -> Iterator[transport.Transport]:
    with rabbitmq.virtual_host() as url:
        file = tmp_path / 'bus.conf'
        file.write_text(f'[DEFAULT]\ntransport_url = {url}\nrpc_response_timeout = 5\n')
        conf = cfg.ConfigOpts()
        conf(['--config-file', str(file)])
        keys = OwnKeys(AGENT, (derive_key(SECRET, AGENT),))
        bus = transport.connect(conf, signer=Signer(AGENT, keys))
        yield bus
        bus.cleanup()


@pytest.fixture
def endpoint(agent_bus: transport.Transport) -> Iterator[Services]:
    signer = Signer(CONDUCTOR, SecretKeys((SECRET,)))
    bus = transport.connect(agent_bus.conf, signer=signer)
    served = Services()
    server = transport.serve(bus, 'controller', Dispatcher(CALLS, [served]))
    server.start()
    yield served
    server.stop()
    server.wait()
    bus.cleanup()


def test_heartbeats_without_answer_arrive(
    agent_bus: transport.Transport, endpoint: Services
) -> None:
    client = connect_conductor(agent_bus)
    assert client.repeat(bare_context(), 'compute-1', 'token')
    for _ in range(3):
        client.repeat_without_answer(bare_context(), 'compute-1', 'token')
    receive = partial(endpoint.tokens.get, timeout=_TIMEOUT)
    assert [receive() for _ in range(4)] == [('compute-1', 'token')] * 4


def test_heartbeat_without_queue_fails(agent_bus: transport.Transport) -> None:
    """No conductor has ever started, so the broker returns the message."""
    with pytest.raises(ServiceUnavailable, match='cyborg-lite-conductor'):
        connect_conductor(agent_bus).repeat_without_answer(
            bare_context(), 'compute-1', 'token'
        )
