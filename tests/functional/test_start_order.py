# SPDX-License-Identifier: Apache-2.0
"""Daemons over RabbitMQ that start before the daemons that they call.

It has a virtual host of its own, because the conductors of two clouds would share one
queue.
"""

from pathlib import Path
from typing import Any

import kombu

from tests.servers import rabbitmq
from tests.servers.stack import Cloud, lines_of


def test_daemons_start_in_any_order(tmp_path: Path) -> None:
    """A call without a receiver fails, and the caller retries."""
    with (
        rabbitmq.virtual_host() as bus,
        Cloud(
            tmp_path,
            transport_url=bus,
            connection=f'sqlite:///{tmp_path}/service.sqlite',
            options={'DEFAULT': {'rpc_response_timeout': 600}},
        ) as cloud,
    ):
        cloud.migrate()
        agent = cloud.start('agent')
        cloud.start('api')
        cloud.until(lambda: lines_of(agent, 'Report to the conductor failed'))
        assert cloud.api().ask('GET', '/v2/devices').status == 503
        cloud.start('conductor')
        assert cloud.provider_of('FPGA')


def test_agent_start_fails_if_broker_refuses_queue(tmp_path: Path) -> None:
    with (
        rabbitmq.virtual_host() as bus,
        Cloud(
            tmp_path,
            transport_url=bus,
            connection=f'sqlite:///{tmp_path}/service.sqlite',
        ) as cloud,
    ):
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
