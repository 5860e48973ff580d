# SPDX-License-Identifier: Apache-2.0
"""Calls while a real RabbitMQ is away, behind a proxy that drops connections."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from oslo_config import cfg

from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR as CALLS
from tests.chaos.history.tcp_proxy import TcpProxy
from tests.servers import rabbitmq


class Services:
    """Services without a database."""

    @serves(Conductor.echo)
    def echo(self) -> None:
        """Do nothing."""

    @serves(Conductor.delete_service)
    def delete_service(self, uuid: str) -> None:
        """Do nothing."""


class Proxy(TcpProxy):
    """TCP proxy that closes the next connections at once."""

    closed_connections = 0  # to close

    def drop(self, number: int) -> None:
        """Close all connections, and the next ones at once."""
        self.closed_connections = number
        self._close_connections()

    def _connect(self, client: socket.socket) -> None:
        if self.closed_connections:
            self.closed_connections -= 1
            client.close()
        else:
            super()._connect(client)


@pytest.fixture
def broker() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture
def proxy(broker: str) -> Iterator[Proxy]:
    parts = urlsplit(broker)
    with Proxy(parts.hostname or '127.0.0.1', parts.port or 5672) as proxy:
        yield proxy


Connect = Callable[[str], transport.Transport]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    buses: list[transport.Transport] = []

    def connect(url: str) -> transport.Transport:
        file = tmp_path / f'{len(buses)}.conf'
        file.write_text(f'[DEFAULT]\ntransport_url = {url}\n')
        conf = cfg.ConfigOpts()
        conf(['--config-file', str(file)])
        buses.append(transport.connect(conf))
        return buses[-1]

    yield connect
    for bus in buses:
        bus.cleanup()


def test_call_of_api_waits_for_broker_that_restarts(
    broker: str, proxy: Proxy, connect: Connect
) -> None:
    """Other calls fail soon: their callers repeat them, or must be quick."""
    dispatcher = Dispatcher(CALLS, [Services()])
    server = transport.serve(connect(broker), 'one', dispatcher)
    server.start()
    parts = urlsplit(broker)
    user = parts.netloc.rpartition('@')[0]
    behind = parts._replace(netloc=f'{user}@127.0.0.1:{proxy.port}')
    client = connect_conductor(connect(urlunsplit(behind)))
    proxy.closed_connections = 3
    with pytest.raises(ServiceUnavailable):
        client.echo(daemon_context())
    for _ in range(2):  # the first call opens the connections
        proxy.drop(3)
        client.delete_service(daemon_context(), 'uuid')
    server.stop()
    server.wait()
