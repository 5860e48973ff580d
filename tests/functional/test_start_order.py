# SPDX-License-Identifier: Apache-2.0
"""Starts of daemons over RabbitMQ: their order, keys and names.

Each test has a virtual host of its own, because the conductors of two clouds would
share one queue.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kombu
import pytest

from tests.servers import rabbitmq
from tests.servers.stack import Cloud, lines_of


@pytest.fixture
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture
def cloud(bus: str, tmp_path: Path) -> Iterator[Cloud]:
    connection = f'sqlite:///{tmp_path}/service.sqlite'
    options = {'DEFAULT': {'rpc_response_timeout': 600}}
    created = Cloud(tmp_path, transport_url=bus, connection=connection, options=options)
    with created:
        created.migrate()
        yield created


def test_daemons_start_in_any_order(cloud: Cloud) -> None:
    """A call without a receiver fails, and the caller retries."""
    agent = cloud.start('agent')
    cloud.start('api')
    cloud.until(lambda: lines_of(agent, 'Report to the conductor failed'))
    assert cloud.api().ask('GET', '/v2/devices').status == 503
    cloud.start('conductor')
    assert cloud.provider_of('FPGA')


def test_agent_start_fails_if_broker_refuses_queue(cloud: Cloud, bus: str) -> None:
    name = f'cyborg_lite.agent.{cloud.host}'
    _declare_quorum_queue(bus, name)
    agent = cloud.begin('agent', 'agent')
    cloud.until(lambda: agent.status is not None, 'the agent exits')
    assert agent.status == 1
    (line,) = lines_of(agent, 'rabbit_quorum_queue')
    assert 'Cannot start: ' in line
    assert f'queue {name} with ' in line
    assert not lines_of(agent, 'Ready.')


def _declare_quorum_queue(bus: str, name: str) -> None:
    library: Any = kombu  # Any: it has no types
    with library.Connection(bus.replace('rabbit://', 'amqp://')) as connection:
        arguments = {'x-queue-type': 'quorum'}
        queue = library.Queue(name, durable=True, queue_arguments=arguments)
        queue.declare(channel=connection.default_channel)


def test_daemon_without_key_does_not_start(cloud: Cloud, tmp_path: Path) -> None:
    options = {'agent': {'key_file': tmp_path / 'absent'}}
    agent = cloud.begin('agent', 'agent', [], options)
    cloud.until(lambda: agent.status is not None)
    assert agent.status == 1
    command = f'cyborg-lite-manage agent key {cloud.host}'
    assert lines_of(agent, f'Cannot start: Cannot read the key file {tmp_path}')
    assert lines_of(agent, command)


def test_agent_started_twice_exits(cloud: Cloud) -> None:
    cloud.start('conductor')
    cloud.start('agent')
    twin = cloud.begin('twin', 'agent')
    cloud.until(lambda: twin.status is not None)
    assert twin.status == 1
    [line] = lines_of(twin, 'Cannot start')
    assert f'Another cyborg-lite-agent uses {cloud.directory}/agent.' in line
