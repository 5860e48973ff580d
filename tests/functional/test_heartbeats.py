# SPDX-License-Identifier: Apache-2.0
"""Short heartbeats over a real RabbitMQ, with and without an answer."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from queue import Queue

import pytest
from oslo_config import cfg

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.rpc import conductor, transport
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext, bare_context
from cyborg_lite.rpc.keys import OwnKey, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.signing import Signer
from tests.servers import rabbitmq

SECRET = 's' * 32
AGENT, CONDUCTOR = Peer(Role.AGENT, 'compute-1'), Peer(Role.CONDUCTOR, 'controller')
_TIMEOUT = 30.0  # seconds


class Conductor:
    """Endpoint that records the tokens of the heartbeats."""

    target = transport.interface(conductor.VERSION)

    def __init__(self) -> None:
        self.tokens: Queue[tuple[str, str]] = Queue()

    @transport.endpoint
    def repeat(self, context: RequestContext, host: str, token: str) -> bool:
        self.tokens.put((host, token))
        return True


@pytest.fixture
def agent_bus(tmp_path: Path) -> Iterator[transport.Transport]:
    with rabbitmq.virtual_host() as url:
        file = tmp_path / 'bus.conf'
        file.write_text(f'[DEFAULT]\ntransport_url = {url}\nrpc_response_timeout = 5\n')
        conf = cfg.ConfigOpts()
        conf(['--config-file', str(file)])
        keys = OwnKey(AGENT, derive_key(SECRET, AGENT))
        bus = transport.connect(conf, signer=Signer(AGENT, keys))
        yield bus
        bus.cleanup()


@pytest.fixture
def endpoint(agent_bus: transport.Transport) -> Iterator[Conductor]:
    signer = Signer(CONDUCTOR, SecretKeys(SECRET))
    bus = transport.connect(agent_bus.conf, signer=signer)
    served = Conductor()
    server = transport.serve(bus, transport.CONDUCTOR_TOPIC, 'controller', [served])
    server.start()
    yield served
    server.stop()
    server.wait()
    bus.cleanup()


def test_heartbeats_without_answer_arrive(
    agent_bus: transport.Transport, endpoint: Conductor
) -> None:
    client = ConductorAPI(agent_bus)
    assert client.repeat(bare_context(), 'compute-1', 'token')
    for _ in range(3):
        client.repeat_without_answer(bare_context(), 'compute-1', 'token')
    receive = partial(endpoint.tokens.get, timeout=_TIMEOUT)
    assert [receive() for _ in range(4)] == [('compute-1', 'token')] * 4


def test_heartbeat_without_queue_fails(agent_bus: transport.Transport) -> None:
    """No conductor has ever started, so the broker returns the message."""
    with pytest.raises(ServiceUnavailable, match='cyborg-lite-conductor'):
        ConductorAPI(agent_bus).repeat_without_answer(
            bare_context(), 'compute-1', 'token'
        )
