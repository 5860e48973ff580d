# SPDX-License-Identifier: Apache-2.0
"""A conductor is killed at each step of a job; another conductor finishes the job."""

from collections.abc import Iterator

import pytest

from tests.chaos.crashing_conductor import STEPS
from tests.chaos.faulty_cloud import FaultyCloud, check_accepted, run_cloud
from tests.servers.stack import NOVA, Instance

# A kill while an API request is being accepted leaves the client without an answer, and
# the ARQ may be bound or not. After the answer the bind must be completed.
_OF_RELEASE = ('record_release', 'release')
BINDING = [step for step in STEPS if not step.endswith(_OF_RELEASE)]
RELEASING = [
    'before:release',
    'after:release',
    'before:record_release',
    'after:record_release',
]


@pytest.fixture(scope='module')
def cloud(
    broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultyCloud]:
    """Yield a cloud on SQLite, because this test is about steps, not databases."""
    directory = tmp_path_factory.mktemp('steps')
    connection = f'sqlite:///{directory}/db.sqlite'
    # timeout of callers of a killed conductor
    cloud = FaultyCloud(directory, broker, connection, rpc_response_timeout=10)
    with run_cloud(cloud):
        yield cloud


@pytest.mark.parametrize('step', BINDING)
def test_bind_survives_kill(cloud: FaultyCloud, step: str) -> None:
    conductor = cloud.start_survivor()
    instance = cloud.request('VGPU', 2)
    conductor.end()
    dying = cloud.start_dying('dying', step)
    answer = instance.bind()
    if step != 'before:accept_bind':
        cloud.until(
            lambda: dying.status is not None or is_finished(cloud, instance),
            'the process exits',
        )
    dying.kill()
    cloud.start_survivor()
    if answer.status != 202 and not instance.list_arqs():
        # The client has no answer, and the bind was not accepted.
        assert step == 'before:accept_bind'
    else:
        cloud.until(instance.is_resolved, 'Nova receives an event per ARQ')
        cloud.settle()
        assert instance.states() == {'Bound'}
        assert cloud.owners() == cloud.list_prepared_arqs() == sorted(instance.arqs)
        # The event is sent twice only if the first answer was lost with the process.
        allowed = 2 if step in ('after:post_events', 'before:finish_job') else 1
        assert len(instance.events()) <= allowed * len(instance.arqs)
        assert {event['status'] for event in instance.events()} == {'completed'}
    instance.delete()
    delete_leftovers(cloud, instance)
    cloud.settle()
    assert cloud.owners() == cloud.list_prepared_arqs() == []


@pytest.mark.parametrize('step', RELEASING)
def test_release_survives_kill(cloud: FaultyCloud, step: str) -> None:
    conductor = cloud.start_survivor()
    instance = cloud.request('VGPU', 2)
    instance.bind()
    cloud.until(instance.is_resolved, 'Nova receives an event per ARQ')
    cloud.settle()
    conductor.end()
    dying = cloud.start_dying('dying', step)
    check_accepted(instance.give_back(), 204)
    instance.deallocate()
    cloud.until(lambda: dying.status is not None, 'the process exits')
    cloud.start_survivor()
    cloud.settle()
    assert cloud.owners() == cloud.list_prepared_arqs() == []
    assert not cloud.states()


def is_finished(cloud: FaultyCloud, instance: Instance) -> bool:
    """Check whether the bind is finished and never reached the step.

    An event at Nova is not enough: a conductor that is killed before it stores the
    answer sends the event again.
    """
    return instance.is_resolved() and not cloud.count_unfinished_jobs()


def delete_leftovers(cloud: FaultyCloud, instance: Instance) -> None:
    """Delete the ARQs as Nova does after a failed bind."""
    path = f'/v2/accelerator_requests?arqs={",".join(instance.arqs)}'
    assert cloud.api(NOVA).ask('DELETE', path).status in (204, 404)
