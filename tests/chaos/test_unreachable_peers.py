# SPDX-License-Identifier: Apache-2.0
"""An unreachable host or Nova does not block other hosts and instances."""

import signal
from collections.abc import Iterator

import pytest

from devstack.launcher.processes import Child
from tests.chaos.faulty_cloud import FaultyCloud, run_cloud
from tests.servers.stack import NOVA, Instance

ENDLESS = 600  # seconds; longer than any wait of a test
PATIENCE = 6  # agent_down_after


@pytest.fixture
def cloud(
    broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultyCloud]:
    """Yield a cloud with so few workers that two blocked jobs would occupy all."""
    directory = tmp_path_factory.mktemp('silence')
    connection = f'sqlite:///{directory}/db.sqlite'
    with run_cloud(FaultyCloud(directory, broker, connection)) as cloud:
        cloud.configure(
            {
                'conductor': {
                    'agent_timeout': ENDLESS,
                    'agent_down_after': PATIENCE,
                    'bind_deadline': 3,
                    'job_workers': 2,
                }
            }
        )
        cloud.start('conductor')
        yield cloud


def agent_of(cloud: FaultyCloud) -> Child:
    (child,) = (
        child_process
        for child_process in cloud.children
        if child_process.log.name == 'agent.log'
    )
    return child


def test_bind_on_unreachable_host_fails_at_deadline(cloud: FaultyCloud) -> None:
    instance = cloud.request('VGPU')
    agent_of(cloud).signal(signal.SIGSTOP)
    assert instance.bind().status == 202
    cloud.until(instance.is_resolved, 'Nova receives the failure')
    assert [event['status'] for event in instance.events()] == ['failed']
    assert instance.states() == {'BindFailed'}
    agent_of(cloud).signal(signal.SIGCONT)
    cloud.until(lambda: not cloud.owners(), 'no handle is allocated')
    assert cloud.list_prepared_arqs() == []


def test_cleanup_on_unreachable_host_blocks_no_other(cloud: FaultyCloud) -> None:
    instances = [cloud.request('VGPU') for _ in range(2)]
    for instance in instances:
        assert instance.bind().status == 202
        cloud.until(instance.is_resolved, 'the ARQ is bound')
    second = cloud.request('FPGA')
    agent = agent_of(cloud)
    agent.kill()
    conductor = cloud.children[-1]
    cloud.until(lambda: 'is down' in cloud.log(conductor), 'the agent is down')
    for instance in instances:
        instance.delete()
        # The ARQ is deleted for clients; the row remains until the host has cleaned up.
        path = f'/v2/accelerator_requests/{instance.arqs[0]}'
        assert cloud.api(NOVA).ask('DELETE', path).status == 404
        assert cloud.api(NOVA).ask('GET', path).body['state'] == 'Deleting'
    assert second.bind().status == 202
    second.wait_until_bound()
    cloud.restart(agent, 'agent')
    cloud.until(lambda: cloud.owners() == second.arqs, 'the handle is cleaned')


def test_event_after_deadline_is_not_sent(cloud: FaultyCloud) -> None:
    first = cloud.request('FPGA')
    cloud.nova.rules.failures = 1
    assert first.bind().status == 202
    cloud.until(lambda: cloud.nova.posts, 'Nova refuses a request')
    paths = '/hostname', '/device_rp_uuid', '/instance_uuid'
    patch = [{'op': 'remove', 'path': path} for path in paths]
    body = dict.fromkeys(first.arqs, patch)
    answer = cloud.api(NOVA).ask('PATCH', '/v2/accelerator_requests', body)
    assert answer.status == 202
    second = Instance(cloud, first.provider, first.resources, arqs=first.arqs)
    second.allocate()
    assert second.bind().status == 202
    cloud.until(second.is_resolved, 'Nova receives the event of the second bind')
    cloud.settle()
    assert first.events() == []
    assert [event['status'] for event in second.events()] == ['completed']
