# SPDX-License-Identifier: Apache-2.0
"""API and conductor in one process, with an agent over RabbitMQ."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child
from tests.chaos.faulty_cloud import FaultyCloud
from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.stack import USER, Instance, expect, lines_of

_PAUSE: Final = 2.0  # seconds that the preparation of a handle takes


@pytest.fixture(scope='module')
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture(scope='module')
def shared_cloud(
    bus: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultyCloud]:
    """Yield a controller and an agent; messages of agents are signed."""
    database = fresh_database('mariadb')
    with ExitStack() as cleanup:
        connection = next(database)
        cleanup.callback(next, database, None)
        directory = tmp_path_factory.mktemp('controller')
        created = FaultyCloud(directory, bus, connection, pause=_PAUSE)
        cleanup.enter_context(created)
        created.migrate()
        created.start('controller')
        created.start('agent')
        yield created


@pytest.fixture
def cloud(shared_cloud: FaultyCloud) -> Iterator[FaultyCloud]:
    """Yield the cloud of this module, and end the daemons that a test adds."""
    port, daemons = shared_cloud.port, len(shared_cloud.children)
    yield shared_cloud
    shared_cloud.port = port
    shared_cloud.configure({'api': {'port': port}})
    while len(shared_cloud.children) > daemons:
        shared_cloud.children.pop().end()
    controller = controller_of(shared_cloud)
    if controller.status is not None:
        shared_cloud.restart(controller, 'controller')


def controller_of(cloud: FaultyCloud) -> Child:
    (child,) = [child for child in cloud.children if child.log.name == 'controller.log']
    return child


def begin_bind(cloud: FaultyCloud) -> Instance:
    """Return an instance whose handle the agent is preparing."""
    instance = cloud.boot('VGPU')
    cloud.until(lambda: cloud.owners() == instance.arqs, 'the handle is claimed')
    assert cloud.states() == {'BindStarted': 1}
    return instance


def check_bound(cloud: FaultyCloud, instance: Instance) -> None:
    cloud.until(instance.is_resolved, 'Nova receives the event')
    assert {event['status'] for event in instance.events()} == {'completed'}
    assert instance.states() == {'Bound'}
    assert cloud.list_prepared_arqs() == instance.arqs
    instance.end()
    assert cloud.list_prepared_arqs() == []


def list_profiles(cloud: FaultyCloud) -> list[str]:
    answer = expect(cloud.api(USER).ask('GET', '/v2/device_profiles'), 200)
    return [profile['uuid'] for profile in answer['device_profiles']]


def test_controller_terminated_during_bind_finishes_it(cloud: FaultyCloud) -> None:
    instance = begin_bind(cloud)
    controller = controller_of(cloud)
    assert controller.end() == 0
    assert not lines_of(controller, 'Traceback')
    cloud.restart(controller, 'controller')
    check_bound(cloud, instance)
    assert len(instance.events()) == 1


def test_controller_killed_other_controller_takes_over(cloud: FaultyCloud) -> None:
    port = free_port()
    cloud.configure({'api': {'port': port}})
    cloud.start('controller', name='controller-2', host='controller-2')
    instance = begin_bind(cloud)
    controller_of(cloud).kill()
    cloud.port = port
    check_bound(cloud, instance)


def test_controller_serves_separate_api(cloud: FaultyCloud) -> None:
    """The conductor of a controller also answers calls over the message bus."""
    before = list_profiles(cloud)
    port = free_port()
    cloud.configure({'api': {'port': port}})
    cloud.start('api')
    cloud.port = port
    assert list_profiles(cloud) == before
    check_bound(cloud, cloud.boot('VGPU'))


def test_controllers_of_one_host_share_the_port(cloud: FaultyCloud) -> None:
    controller = controller_of(cloud)
    assert controller.end() == 0
    cloud.restart(controller, 'controller', workers=2)
    check_bound(cloud, cloud.boot('VGPU'))
    assert cloud.api(USER).ask('GET', '/healthcheck/ready').status == 200
    controller = controller_of(cloud)
    assert controller.end() == 0
    assert lines_of(controller, 'Stopped.')
    assert not lines_of(controller, 'Traceback')
