# SPDX-License-Identifier: Apache-2.0
"""Reboots of a host with instances: real daemons over a broker, in each start order.

Prepared handles are files; a reboot deletes them and changes the boot id.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.agent.arqs.readiness import are_rebuilt
from cyborg_lite.agent.state.cache import Cache
from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child
from tests.chaos.faulty_cloud import FaultyCloud
from tests.doubles.drivers import handle
from tests.doubles.rebootable_host import boot
from tests.servers import rabbitmq
from tests.servers.stack import Instance


class Machine(FaultyCloud):
    """Cloud of one host that the test can reboot."""

    def __init__(
        self, directory: Path, transport_url: str, concurrency: str = 'threading'
    ) -> None:
        connection = f'sqlite:///{directory}/db.sqlite'
        super().__init__(directory, transport_url, connection)
        self._concurrency = concurrency
        self.root = directory / 'host'
        self.boots = self.starts = 0
        self.agent: Child | None = None  # None: it is not running
        self.power_cycle()

    def power_cycle(self) -> None:
        """Stop the agent, delete the prepared files and change the boot id."""
        if self.agent is not None:
            self.agent.kill()
        for file in self.files.iterdir():
            file.unlink()
        self.boots += 1
        boot(self.root, f'boot-{self.boots}')

    def begin_agent(self, patience: int = 60) -> Child:
        """Start the agent as systemd does at boot, without waiting."""
        self.starts += 1
        name = f'agent-{self.starts}'
        options = {'sysfs_root': self.root, 'recovery_patience': patience}
        self.agent = self.begin(name, 'agent', [], {'agent': options})
        return self.agent

    def start_agent(self, patience: int = 60) -> Child:
        agent = self.begin_agent(patience)
        agent.until(lambda: 'Ready.' in self.log(agent))
        return agent


@pytest.fixture(scope='module')
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture
def machine(bus: str, tmp_path: Path) -> Iterator[Machine]:
    """Yield a host with an API, a conductor and an agent."""
    with Machine(tmp_path, bus) as cloud:
        cloud.migrate()
        cloud.start('conductor')
        cloud.start('api')
        cloud.start_agent()
        yield cloud


def boot_guest(machine: Machine) -> tuple[Instance, dict[str, str]]:
    """Return an instance with two vGPUs, and the handle of each ARQ."""
    guest = machine.boot_bound('VGPU', 2)
    return guest, {arq['uuid']: arq['attach_handle_uuid'] for arq in guest.list_arqs()}


def all_bound(machine: Machine, guest: Instance) -> bool:
    return machine.states() == {'Bound': len(guest.arqs)}


def count_completed(guest: Instance) -> int:
    return [event['status'] for event in guest.events()].count('completed')


def test_agent_without_state_receives_handles_to_rebuild(machine: Machine) -> None:
    guest, handles = boot_guest(machine)
    machine.power_cycle()
    shutil.rmtree(machine.directory / 'agent')
    # The conductor cannot distinguish the host from another one with its name.
    assert machine.run('manage', 'agent', 'forget-identity', machine.host)[0] == 0
    machine.start_agent()
    machine.until(
        lambda: count_completed(guest) == 4,
        'Nova receives the events of the second bind',
    )
    assert {file.name for file in machine.files.iterdir()} == set(handles.values())
    assert all_bound(machine, guest)


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_reboot_without_broker_rebuilds_handles(
    tmp_path: Path, concurrency: str
) -> None:
    """Handles are rebuilt, and the waiting agent can be stopped."""
    nowhere = f'rabbit://guest:guest@127.0.0.1:{free_port()}/'
    machine = Machine(tmp_path, nowhere, concurrency)
    state_path = machine.directory / 'agent'
    cache = Cache(state_path)
    prepared_handle = handle('fa4f:0c:00.0', 'left-before-the-boot')
    cache.add_handles([prepared_handle])
    cache.mark_prepared([prepared_handle.uuid], 'boot-0')
    agent = machine.begin_agent()
    machine.until(
        lambda: machine.list_prepared_arqs() == [prepared_handle.arq_uuid],
        'the vGPU is rebuilt',
    )
    machine.until(
        lambda: are_rebuilt(state_path, 'boot-1'), 'the agent waits for the broker'
    )
    assert agent.end() == 0
    assert machine.log(agent).endswith('Stopped.\n')
    assert 'Traceback' not in machine.log(agent)
