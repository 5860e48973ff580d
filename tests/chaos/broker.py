# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ broker that tests kill and restart."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child

# Debian's program on the PATH only runs the node of the host.
_PROGRAM: Final = Path('/usr/lib/rabbitmq/bin/rabbitmq-server')


class OwnNode:
    """Node that shares nothing with the node of the host."""

    def __init__(self, directory: Path, home: Path | None = None) -> None:
        """Store the arguments.

        :param home: directory of the cookie, which the nodes of a cluster share; None:
            the directory of the node
        """
        self._directory = directory
        self._home = home or directory
        self._port = free_port()
        self._child = Child('rabbitmq', directory / 'rabbitmq.log')
        self.name = f'chaos-{self._port}@localhost'
        self.settings: list[str] = []
        """Further lines of the configuration."""

    @property
    def address(self) -> str:
        return f'guest:guest@127.0.0.1:{self._port}'

    @property
    def url(self) -> str:
        return f'rabbit://{self.address}/'

    def start(self) -> None:
        self.begin()
        self.wait()

    def wait(self) -> None:
        """Wait until the node serves clients."""
        self._child.until(self._answers, limit=120)

    def begin(self) -> None:
        """Start the node without waiting."""
        config = self._directory / 'rabbitmq.conf'
        lines = [f'listeners.tcp.local = 127.0.0.1:{self._port}', *self.settings]
        config.write_text(''.join(f'{line}\n' for line in lines))
        self._child.start(
            [str(_PROGRAM)],
            {
                'HOME': str(self._home),
                'RABBITMQ_NODENAME': self.name,
                'RABBITMQ_CONF_ENV_FILE': os.devnull,
                'RABBITMQ_CONFIG_FILE': str(config),
                'RABBITMQ_DIST_PORT': str(free_port()),
                'RABBITMQ_MNESIA_BASE': str(self._directory / 'mnesia'),
                'RABBITMQ_LOG_BASE': str(self._directory / 'log'),
                'RABBITMQ_ENABLED_PLUGINS_FILE': str(self._directory / 'plugins'),
                'RABBITMQ_PID_FILE': str(self._directory / 'pid'),
            },
        )

    def _answers(self) -> bool:
        """Check whether the broker sends its greeting, not only listens."""
        try:
            with socket.create_connection(('127.0.0.1', self._port), 1) as connection:
                connection.settimeout(5)
                connection.sendall(b'AMQP\x00\x00\x09\x01')
                return bool(connection.recv(1))
        except OSError:
            return False

    def end(self) -> None:
        self._child.kill()


@contextmanager
def own_node(directory: Path) -> Iterator[OwnNode]:
    skip_without_program()
    node = OwnNode(directory)
    node.start()
    try:
        yield node
    finally:
        node.end()


def skip_without_program() -> None:
    """Skip the test if RabbitMQ is not installed."""
    if not os.access(_PROGRAM, os.X_OK):
        pytest.skip(f'there is no {_PROGRAM}')
