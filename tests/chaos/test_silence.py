# SPDX-License-Identifier: Apache-2.0
"""A host or a Nova that does not answer holds up nobody who does not need it."""

import signal
from collections.abc import Iterator

import pytest

from devstack.launcher.processes import Child
from tests.chaos.kit import HurtCloud, running
from tests.fakes.stack import NOVA, Instance

ENDLESS = 600  # seconds; longer than any wait of a test
PATIENCE = 6  # seconds until a silent agent is down


@pytest.fixture
def cloud(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HurtCloud]:
    """So few workers that two who wait for a host would be all of them."""
    directory = tmp_path_factory.mktemp('silence')
    connection = f'sqlite:///{directory}/db.sqlite'
    with running(HurtCloud(directory, broker, connection)) as cloud:
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


def agent_of(cloud: HurtCloud) -> Child:
    (child,) = (one for one in cloud.children if one.log.name == 'agent.log')
    return child


def offered(cloud: HurtCloud, resource_class: str) -> Instance:
    instance = Instance(cloud, cloud.provider_of(resource_class), {resource_class: 1})
    instance.create_arqs(cloud.create_profile(resource_class))
    instance.allocate()
    return instance


def test_a_bind_ends_at_its_deadline_whatever_its_host_does(cloud: HurtCloud) -> None:
    instance = offered(cloud, 'VGPU')
    agent_of(cloud).signal(signal.SIGSTOP)
    assert instance.bind().status == 202
    cloud.until(instance.resolved, 'Nova hears of the failure')
    assert [event['status'] for event in instance.events()] == ['failed']
    assert instance.states() == {'BindFailed'}
    agent_of(cloud).signal(signal.SIGCONT)
    cloud.until(lambda: not cloud.owners(), 'nothing is held')
    assert cloud.prepared() == []


def test_what_a_silent_host_has_to_clean_holds_up_no_other(cloud: HurtCloud) -> None:
    instances = [offered(cloud, 'VGPU') for _ in range(2)]
    for instance in instances:
        assert instance.bind().status == 202
        cloud.until(instance.resolved, 'it is bound')
    other = offered(cloud, 'FPGA')
    agent = agent_of(cloud)
    agent.kill()
    conductor = cloud.children[-1]
    cloud.until(lambda: 'is down' in cloud.log(conductor), 'the agent is down')
    for instance in instances:
        instance.delete()
        # It is deleted for whoever asks again, and stays until it is clean.
        path = f'/v2/accelerator_requests/{instance.arqs[0]}'
        assert cloud.api(NOVA).ask('DELETE', path).status == 404
        assert cloud.api(NOVA).ask('GET', path).body['state'] == 'Deleting'
    assert other.bind().status == 202
    cloud.until(other.resolved, 'the other one is bound')
    assert other.states() == {'Bound'}
    cloud.restart(agent, 'agent')
    cloud.until(lambda: cloud.owners() == other.arqs, 'the host has cleaned it')


def test_news_that_came_too_late_does_not_follow_what_came_after_it(
    cloud: HurtCloud,
) -> None:
    first = offered(cloud, 'FPGA')
    cloud.nova.rules.failures = 1
    assert first.bind().status == 202
    cloud.until(lambda: cloud.nova.posts, 'Nova is asked, and refuses')
    paths = '/hostname', '/device_rp_uuid', '/instance_uuid'
    patch = [{'op': 'remove', 'path': path} for path in paths]
    body = dict.fromkeys(first.arqs, patch)
    answer = cloud.api(NOVA).ask('PATCH', '/v2/accelerator_requests', body)
    assert answer.status == 202
    second = Instance(cloud, first.provider, first.resources, arqs=first.arqs)
    second.allocate()
    assert second.bind().status == 202
    cloud.until(second.resolved, 'Nova hears of the second bind')
    cloud.settle()
    assert first.events() == []
    assert [event['status'] for event in second.events()] == ['completed']
