# SPDX-License-Identifier: Apache-2.0
"""Rolling upgrade: daemons of this release beside those of an imaginary next release.

Instances are bound and released all the time, with handles that the agent prepares.
"""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite import version
from cyborg_lite.db.core.engine import Database
from devstack.launcher.processes import Child
from tests.builders.next_release import labels, tree
from tests.chaos.faulty_cloud import FaultyCloud
from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.support.sources import ROOT

_BINDS: Final = 2  # per mix of daemons
_REFUSALS: Final = re.compile('.*(?:UnsupportedVersion|NoSuchMethod).*')

# A process of the next release that calls a method which this release does not have.
_CALL: Final = """
import sys
from cyborg_lite import conf
from cyborg_lite.cmd.daemons import api_application
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.context import daemon_context
bus = api_application.connect(conf.parse([], 'test', [sys.argv[1]]))
try:
    print(connect_conductor(bus).list_labels(daemon_context()))
except ServiceUnavailable as error:
    print(type(error.__cause__).__name__)
"""


class MixedCloud(FaultyCloud):
    """Cloud with daemons of two releases."""

    def __init__(self, directory: Path, transport_url: str, connection: str) -> None:
        super().__init__(directory, transport_url, connection)
        # The drivers of the tests are in this checkout.
        path = tree.write_tree(directory / 'next'), self.python_path[-1], ROOT
        # Without the second variable, Python imports from the current folder first.
        self._next = {
            'PYTHONPATH': os.pathsep.join(map(str, path)),
            'PYTHONSAFEPATH': '1',
        }
        self.bound = 0

    def start_next(self, binary: str, name: str, **default: object) -> Child:
        """Start a daemon of the next release with options of ``[DEFAULT]``."""
        child = self.begin(
            name, binary, options={'DEFAULT': default}, environment=self._next
        )
        child.until(lambda: 'Ready.' in self.log(child))
        return child

    def upgrade_schema(self, *arguments: str) -> int:
        """Run a command of ``cyborg-lite-dbsync`` of the next release.

        :returns: its exit status
        """
        config = self.write_config('dbsync-next', {})
        return self._run(
            *('-m', 'cyborg_lite.cmd.dbsync.main', '--config-file', str(config)),
            *arguments,
        ).returncode

    def call_labels(self, level: str = 'auto') -> str:
        """Return the answer to a call of the new method, or the name of its error.

        :param level: interface version of the option of the caller
        """
        options = {'upgrade_levels': {'conductor': level}}
        config = self.write_config('caller-next', options)
        process = self._run('-c', _CALL, str(config))
        assert process.returncode == 0, process.stderr
        return process.stdout.strip()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the code of the next release."""
        return subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, **self._next},
            capture_output=True,
            text=True,
            check=False,
        )

    # Any: functions of any kind.
    def write(self, function: Any, *arguments: Any) -> Any:
        """Read or write the database in one transaction."""
        with closing(Database(self.connection)) as database:
            return database.write(function, *arguments)

    def label_host(self) -> str:
        """Run a job of the new type; return the label that it stores."""
        self.write(labels.add_job, tree.JOB_TYPE, self.host)
        self.until(lambda: not self.count_label_jobs(), 'the job has ended')
        (label,) = set(self.write(labels.list_labels))
        return str(label)

    def count_label_jobs(self) -> int:
        jobs = self.count_unfinished_jobs()
        return sum(jobs[kind, state] for kind, state in jobs if kind == tree.JOB_TYPE)

    def wait_for_stable_report(self, agent: Child) -> None:
        """Wait until an agent sends heartbeats and no more reports."""
        # Only the agent has an identity.
        query = 'SELECT heartbeat_at FROM services WHERE identity IS NOT NULL'
        last: list[Any] = [None, set()]  # number, times of heartbeats since it changed

        def is_stable() -> bool:
            number = self.log(agent).count('Reported ')
            ((time,),) = self.rows(query)
            if number != last[0]:
                last[:] = [number, set()]
            last[1].add(time)
            return len(last[1]) > 3

        self.until(is_stable, 'the agent sends no more reports')

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
        instance = self.boot('VGPU', provider=provider, profile=profile)
        self.until(instance.is_resolved, 'Nova has the event')
        # While the agent restarts, the API delays Nova; the events have the result.
        assert {event['status'] for event in instance.events()} == {'completed'}
        instance.delete()

    def list_versions(self) -> set[str]:
        """Return the versions of the daemons that have ever reported."""
        return {text for (text,) in self.rows('SELECT version FROM services')}

    def list_slots(self) -> set[str | None]:
        return {slot for (slot,) in self.rows('SELECT slot FROM devices')}

    def check_end(self) -> None:
        """Check that no job, ARQ or prepared handle is left."""
        self.settle()
        assert not self.owners()
        assert not self.list_prepared_arqs()

    def list_refusals(self) -> list[str]:
        """Return the lines about methods that a server does not have."""
        logs = map(self.log, self.children)
        return [match[0] for log in logs for match in _REFUSALS.finditer(log)]


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
    agent, api = cloud.start('agent'), cloud.start('api')
    conductor = cloud.start('conductor', host='this')
    assert cloud.upgrade_schema('upgrade', '--contract') == 1
    assert cloud.upgrade_schema('upgrade', '--expand') == 0
    with cloud.load() as load:
        # This release works with the columns of the next one.
        cloud.wait_for_binds(load)
        new_conductor = cloud.start_next('conductor', 'conductor-next', host='next')
        # Conductors of both releases take the jobs of the other.
        cloud.wait_for_binds(load)
        # The conductor of this release leaves the job to the other one.
        assert cloud.label_host() == 'unknown'
        assert cloud.call_labels() == 'UnsupportedVersion'
        conductor.end()
        # The new conductor with the agent and the API of this release.
        cloud.wait_for_binds(load)
    api.end()
    cloud.start_next('api', 'api-next')
    with cloud.load() as load:
        cloud.start('conductor', name='conductor-again', host='this')
        new_conductor.end()
        agent.end()
        agent = cloud.start_next('agent', 'agent-next')
        # The reverse: the conductor of this release with the new agent and API.
        cloud.wait_for_binds(load)
    cloud.wait_for_stable_report(agent)
    assert cloud.list_versions() == {tree.VERSION, version.VERSION}
    assert cloud.upgrade_schema('upgrade', '--contract') == 1
    assert not cloud.list_refusals()
    cloud.check_end()


def test_last_steps_of_upgrade_use_new_features(cloud: MixedCloud) -> None:
    cloud.migrate()
    written_before = [cloud.start('conductor'), cloud.start('agent')]
    cloud.provider_of('VGPU')
    for daemon in written_before:
        daemon.end()
    assert cloud.upgrade_schema('upgrade', '--expand') == 0
    for binary in ('conductor', 'agent', 'api'):
        cloud.start_next(binary, f'{binary}-next')
    assert cloud.upgrade_schema('upgrade', '--contract') == 1  # rows are not migrated
    assert cloud.upgrade_schema('online_data_migrations') == 0
    assert cloud.upgrade_schema('upgrade', '--contract') == 0
    with cloud.load() as load:
        cloud.wait_for_binds(load)
    assert cloud.label_host() == 'read from the agent'
    assert 'read from the agent' in cloud.call_labels()
    # The old conductor left this column empty.
    cloud.until(lambda: cloud.list_slots() == {tree.SLOT}, 'the new report is stored')
    # An operator may keep a level that is no longer necessary.
    assert cloud.call_labels(level='1.0') == 'UnsupportedVersion'
    assert not cloud.list_refusals()
    cloud.check_end()
