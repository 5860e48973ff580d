# SPDX-License-Identifier: Apache-2.0
"""Rolling upgrade: daemons of the previous release beside those of this one.

Instances are bound and released all the time, with handles that the agent prepares.
"""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite import version
from devstack.launcher.processes import Child
from tests.chaos.faulty_cloud import FaultyCloud
from tests.servers import previous_release, rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.stack import Instance, expect

_BINDS: Final = 2  # per mix of daemons
_LEVEL: Final = '1.2'  # interface version of the previous release, of both servers
_REFUSALS: Final = re.compile('.*(?:UnsupportedVersion|NoSuchMethod).*')


class MixedCloud(FaultyCloud):
    """Cloud with daemons of two releases."""

    def __init__(self, directory: Path, transport_url: str, connection: str) -> None:
        super().__init__(directory, transport_url, connection)
        self._drivers = self.python_path[-1]
        self._previous = previous_release.install(directory / 'previous')
        self.bound = 0

    def start_previous(self, binary: str, name: str, **default: object) -> Child:
        """Start a daemon of the previous release with options of ``[DEFAULT]``."""
        child = self.begin(
            name,
            binary,
            options={'DEFAULT': default},
            environment=previous_release.environment(self._previous, self._drivers),
        )
        child.until(lambda: 'Ready.' in self.log(child))
        return child

    def start_pinned(self, binary: str, name: str, level: str, **default: str) -> Child:
        """Start a daemon of this release that calls no method above a version."""
        options = {
            'DEFAULT': default,
            'upgrade_levels': {'conductor': level, 'agent': level},
        }
        child = self.begin(name, binary, options=options)
        child.until(lambda: 'Ready.' in self.log(child))
        return child

    def wait_for_binds(self, load: Future[None]) -> None:
        """Wait until the present daemons have bound and released instances."""
        goal = self.bound + _BINDS
        self.until(lambda: load.done() or self.bound >= goal, 'binds have ended')
        if load.done():
            load.result()

    @contextmanager
    def load(self) -> Iterator[Future[None]]:
        """Bind and release instances until the block ends, or a bind fails."""
        provider, profile = self.provider_of('VGPU'), self.create_profile('VGPU')
        stopping = threading.Event()

        def run() -> None:
            while not stopping.is_set():
                self._bind(provider, profile)
                self.bound += 1

        with ThreadPoolExecutor(max_workers=1) as executor:
            future = executor.submit(run)
            try:
                yield future
            finally:
                stopping.set()
            future.result()

    def _bind(self, provider: str, profile: str) -> None:
        instance = Instance(self, provider, {'VGPU': 1})
        instance.create_arqs(profile)
        instance.allocate()
        expect(instance.bind(), 202)
        self.until(instance.is_resolved, 'Nova has the event')
        # While the agent restarts, the API delays Nova; the events have the result.
        assert {event['status'] for event in instance.events()} == {'completed'}
        instance.delete()

    def list_versions(self) -> set[str]:
        """Return the versions of the daemons that have ever reported."""
        return {text for (text,) in self.rows('SELECT version FROM services')}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[MixedCloud]:
    database = fresh_database('mariadb')
    with ExitStack() as cleanup:
        bus = cleanup.enter_context(rabbitmq.virtual_host())
        connection = next(database)
        cleanup.callback(next, database, None)
        yield cleanup.enter_context(MixedCloud(tmp_path, bus, connection))


def test_rolling_upgrade_binds_in_every_mix(cloud: MixedCloud) -> None:
    cloud.migrate()
    agent = cloud.start_previous('agent', 'agent-previous')
    api = cloud.start_previous('api', 'api-previous')
    new_conductor = cloud.start('conductor', name='conductor-new', host='new')
    with cloud.load() as load:
        # New conductors with the previous agent and API.
        cloud.wait_for_binds(load)
        cloud.start_previous('conductor', 'conductor-previous', host='previous')
        # Conductors of both releases take the jobs of the other.
        cloud.wait_for_binds(load)
    api.end()
    cloud.start('api', name='api-new')
    with cloud.load() as load:
        agent.end()
        cloud.start('agent', name='agent-new')
        new_conductor.end()
        # The reverse: the previous conductor with the new agent and API.
        cloud.wait_for_binds(load)
    assert cloud.list_versions() >= {previous_release.VERSION, version.version()}
    cloud.settle()
    assert not cloud.owners()
    assert not cloud.list_prepared_arqs()


def test_pinned_daemons_call_no_newer_method(cloud: MixedCloud) -> None:
    """The oldest daemon may report no version, so an operator states the level."""
    cloud.migrate()
    previous = [
        cloud.start_previous('conductor', 'conductor-previous', host='previous'),
        cloud.start_previous('agent', 'agent-previous'),
    ]
    cloud.start_pinned('api', 'api-new', _LEVEL)
    conductor = cloud.start_pinned('conductor', 'conductor-new', _LEVEL, host='new')
    with cloud.load() as load:
        # The new conductor calls the previous agent.
        cloud.wait_for_binds(load)
    conductor.end()
    previous.pop().end()
    agent = cloud.start_pinned('agent', 'agent-new', _LEVEL)
    with cloud.load() as load:
        # The new agent and API call the previous conductor.
        cloud.wait_for_binds(load)
    logs = [cloud.log(child) for child in (*cloud.children, agent)]
    assert not [match[0] for log in logs for match in _REFUSALS.finditer(log)]
    previous.pop().end()
    cloud.start_pinned('conductor', 'conductor-last', _LEVEL, host='last')
    with cloud.load() as load:
        # Daemons of one release work with pins that were not removed.
        cloud.wait_for_binds(load)
    cloud.settle()
    assert not cloud.owners()
    assert not cloud.list_prepared_arqs()
