# SPDX-License-Identifier: Apache-2.0
"""Signed messages between processes over RabbitMQ."""

from pathlib import Path

from cyborg_lite.rpc.security.keys import Peer, Role, derive_key
from tests.servers import rabbitmq
from tests.servers.stack import Cloud, lines_of


def test_agent_with_key_of_another_host_is_refused(tmp_path: Path) -> None:
    with (
        rabbitmq.virtual_host() as bus,
        Cloud(
            tmp_path,
            transport_url=bus,
            connection=f'sqlite:///{tmp_path}/service.sqlite',
        ) as cloud,
    ):
        cloud.migrate()
        conductor = cloud.start('conductor')
        key = tmp_path / 'wrong.key'
        key.touch(0o600)
        key.write_text(derive_key('s' * 32, Peer(Role.AGENT, cloud.host)))
        agent = cloud.begin('wrong', 'agent', [], {'agent': {'key_file': key}})
        refused = f'wrong signature, from agent:{cloud.host}'
        cloud.until(lambda: lines_of(agent, refused))
        assert lines_of(conductor, f'Refusing messages of agent:{cloud.host}')
        agent.kill()
        cloud.start('agent')
        assert cloud.provider_of('FPGA')


def test_daemon_without_key_does_not_start(tmp_path: Path) -> None:
    with Cloud(
        tmp_path, transport_url='rabbit://', connection=f'sqlite:///{tmp_path}/db'
    ) as cloud:
        options = {'agent': {'key_file': tmp_path / 'absent'}}
        agent = cloud.begin('agent', 'agent', [], options)
        cloud.until(lambda: agent.status is not None)
        assert agent.status == 1
        command = f'cyborg-lite-manage agent key {cloud.host}'
        assert lines_of(agent, f'Cannot start: Cannot read the key file {tmp_path}')
        assert lines_of(agent, command)
