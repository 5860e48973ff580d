# SPDX-License-Identifier: Apache-2.0
"""A conductor is killed at each step of a job; its successor ends it all the same."""

from collections.abc import Iterator

import pytest

from tests.chaos.dying_conductor import STEPS
from tests.chaos.kit import HurtCloud, accepted, running
from tests.fakes.stack import NOVA, Instance

# Where a request for a device is killed: while it is accepted, the client has no
# answer, and may find it bound or not; later it has one, and it must be kept.
_OF_RELEASE = ('cleaned', 'release')
BINDING = [step for step in STEPS if not step.endswith(_OF_RELEASE)]
RELEASING = ['before:release', 'after:release', 'before:cleaned', 'after:cleaned']


@pytest.fixture(scope='module')
def hurt_cloud(
    broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HurtCloud]:
    """On SQLite: this test is about steps, and others are about databases."""
    directory = tmp_path_factory.mktemp('steps')
    connection = f'sqlite:///{directory}/db.sqlite'
    # Whoever calls a conductor that dies waits for as long as this.
    cloud = HurtCloud(directory, broker, connection, rpc_response_timeout=10)
    with running(cloud):
        yield cloud


def offered(cloud: HurtCloud) -> Instance:
    """A server that is to be bound, with two requests for what its host prepares."""
    provider = cloud.provider_of('VGPU')
    instance = Instance(cloud, provider, {'VGPU': 2})
    instance.create_arqs(cloud.create_profile('VGPU', 2))
    instance.allocate()
    return instance


@pytest.mark.parametrize('step', BINDING)
def test_a_bind_survives(hurt_cloud: HurtCloud, step: str) -> None:
    cloud = hurt_cloud
    before = cloud.start('conductor', name='before')
    instance = offered(cloud)
    before.end()
    dying = cloud.start_dying('dying', step)
    answer = instance.bind()
    if step != 'before:accept':
        cloud.until(
            lambda: dying.status is not None or ended(cloud, instance), 'it dies'
        )
    dying.kill()
    after = cloud.start('conductor', name='after')
    if answer.status != 202 and not instance.shown():
        # Nobody was told that it was accepted, and it was not.
        assert step == 'before:accept'
    else:
        cloud.until(instance.resolved, 'Nova hears of every request')
        cloud.settle()
        assert instance.states() == {'Bound'}
        assert cloud.owners() == cloud.prepared() == sorted(instance.arqs)
        # Twice only where the answer to the first was lost with the process.
        allowed = 2 if step in ('after:post_events', 'before:finish') else 1
        assert len(instance.events()) <= allowed * len(instance.arqs)
        assert {event['status'] for event in instance.events()} == {'completed'}
    instance.delete()
    delete_leftovers(cloud, instance)
    cloud.settle()
    assert cloud.owners() == cloud.prepared() == []
    after.end()


@pytest.mark.parametrize('step', RELEASING)
def test_a_release_survives(hurt_cloud: HurtCloud, step: str) -> None:
    cloud = hurt_cloud
    before = cloud.start('conductor', name='before')
    instance = offered(cloud)
    instance.bind()
    cloud.until(instance.resolved, 'Nova hears of every request')
    cloud.settle()
    before.end()
    dying = cloud.start_dying('dying', step)
    accepted(instance.give_back(), 204)
    instance.deallocate()
    cloud.until(lambda: dying.status is not None, 'it dies')
    after = cloud.start('conductor', name='after')
    cloud.settle()
    assert cloud.owners() == cloud.prepared() == []
    assert not cloud.states()
    after.end()


def ended(cloud: HurtCloud, instance: Instance) -> bool:
    """Whether the bind has never come by the step, and nothing of it is left to do.

    Not only that Nova has heard: who is killed before it has written that down has
    lost the answer, and Nova hears of it once more.
    """
    return instance.resolved() and not cloud.unfinished()


def delete_leftovers(cloud: HurtCloud, instance: Instance) -> None:
    """As Nova does after a bind that it takes for failed."""
    path = f'/v2/accelerator_requests?arqs={",".join(instance.arqs)}'
    assert cloud.api(NOVA).ask('DELETE', path).status in (204, 404)
