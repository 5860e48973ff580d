# SPDX-License-Identifier: Apache-2.0
"""Daemons over RabbitMQ that are started before those whom they need.

Apart from the other daemons: on their virtual host the conductors of both clouds would
take calls from one queue, whatever their exchanges are.
"""

from pathlib import Path

from tests.fakes import rabbitmq
from tests.fakes.stack import Cloud, lines_of


def test_daemons_may_be_started_in_any_order(tmp_path: Path) -> None:
    """Who calls before anybody is there hears so, and need not wait in vain."""
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
        cloud.until(lambda: lines_of(agent, 'The conductor is not told'))
        assert cloud.api().ask('GET', '/v2/devices').status == 503
        cloud.start('conductor')
        assert cloud.provider_of('FPGA')
