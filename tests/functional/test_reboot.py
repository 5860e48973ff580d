# SPDX-License-Identifier: Apache-2.0
"""A host is booted under its guests: real daemons over a broker, in each order.

What the host had prepared are files; a boot takes them all and changes the boot id.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.agent.cache import Cache
from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child
from tests.chaos.kit import HurtCloud
from tests.fakes import rabbitmq
from tests.fakes.drivers import handle
from tests.fakes.rebooting import boot
from tests.fakes.stack import NOVA, Instance


class Machine(HurtCloud):
    """A cloud of one host, whose power button is ours."""

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
        """What needs the kernel is gone, what is on the disk is not."""
        if self.agent is not None:
            self.agent.kill()
        for file in self.files.iterdir():
            file.unlink()
        self.boots += 1
        boot(self.root, f'boot-{self.boots}')

    def begin_agent(self, patience: int = 60) -> Child:
        """As systemd does at a boot; without waiting until it is ready."""
        self.starts += 1
        name = f'agent-{self.starts}'
        options = {'sysfs_root': self.root, 'recovery_patience': patience}
        self.agent = self.begin(name, 'agent', [], {'agent': options})
        return self.agent

    def start_agent(self, patience: int = 60) -> Child:
        agent = self.begin_agent(patience)
        agent.until(lambda: 'Ready.' in self.log(agent))
        return agent

    def obstruct(self, handle: str) -> Path:
        """Somebody else's thing is where that handle must be; what is in the way."""
        obstacle = self.files / handle
        obstacle.write_text('a stranger')
        return obstacle


@pytest.fixture(scope='module')
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture
def machine(bus: str, tmp_path: Path) -> Iterator[Machine]:
    """With an API, a conductor and an agent."""
    with Machine(tmp_path, bus) as made:
        made.migrate()
        made.start('conductor')
        made.start('api')
        made.start_agent()
        yield made


def boot_guest(machine: Machine) -> tuple[Instance, dict[str, str]]:
    """An instance with two vGPUs, and the handle of each of its requests."""
    guest = machine.boot('VGPU', 2)
    machine.until(guest.resolved, 'Nova hears of every request')
    return guest, {arq['uuid']: arq['attach_handle_uuid'] for arq in guest.shown()}


def all_bound(machine: Machine, guest: Instance) -> bool:
    return machine.states() == {'Bound': len(guest.arqs)}


def completed(guest: Instance) -> int:
    return [event['status'] for event in guest.events()].count('completed')


def steps(machine: Machine, arq: str) -> list[str]:
    query = f"SELECT step FROM arq_events WHERE arq_uuid = '{arq}' ORDER BY id"
    return [step for (step,) in machine.rows(query)]


def test_agent_first(machine: Machine) -> None:
    """The usual order: nothing of Nova's runs on the host before the agent is ready."""
    guest, handles = boot_guest(machine)
    machine.power_cycle()
    machine.start_agent()
    # Under the same names, before it said that it is ready.
    assert {file.name for file in machine.files.iterdir()} == set(handles.values())
    machine.until(lambda: completed(guest) == 4, 'Nova hears that they are bound again')
    machine.until(lambda: all_bound(machine, guest), 'all are bound')
    shown = {arq['uuid']: arq['attach_handle_uuid'] for arq in guest.shown()}
    assert shown == handles
    machine.until(lambda: 'Rebuilt' in steps(machine, guest.arqs[0]))
    told = [one for one in steps(machine, guest.arqs[0]) if one != 'Claimed']
    assert told.count('Provisioning') == 1
    assert told[told.index('Provisioning') + 1] == 'Bound'


def test_nova_first(machine: Machine) -> None:
    """A server that is started while its devices are rebuilt is told to wait."""
    guest, handles = boot_guest(machine)
    machine.power_cycle()
    obstacle = machine.obstruct(next(iter(handles.values())))
    agent = machine.begin_agent()
    machine.until(
        lambda: machine.states() == {'Provisioning': 2}, 'the boot is noticed'
    )
    assert machine.api(NOVA).ask('GET', guest.path).status == 423
    assert completed(guest) == 2
    assert 'Ready.' not in machine.log(agent)
    obstacle.unlink()
    machine.until(lambda: completed(guest) == 4, 'Nova hears that they are bound again')
    assert machine.api(NOVA).ask('GET', guest.path).status == 200
    assert all_bound(machine, guest)


def test_conductor_last(machine: Machine) -> None:
    guest, handles = boot_guest(machine)
    conductor = next(one for one in machine.children if one.log.name == 'conductor.log')
    conductor.kill()
    machine.power_cycle()
    machine.start_agent()
    assert {file.name for file in machine.files.iterdir()} == set(handles.values())
    assert completed(guest) == 2
    machine.start('conductor', name='conductor-2')
    machine.until(lambda: completed(guest) == 4, 'Nova hears that they are bound again')
    machine.until(lambda: all_bound(machine, guest), 'all are bound')


def test_what_cannot_be_rebuilt_fails_and_the_rest_goes_on(machine: Machine) -> None:
    guest, handles = boot_guest(machine)
    lost, kept = guest.arqs
    machine.power_cycle()
    obstacle = machine.obstruct(handles[lost])
    machine.start_agent(patience=1)
    machine.until(lambda: len(guest.events()) == 4, 'Nova hears how it ended')
    ended = {event['tag']: event['status'] for event in guest.events()[2:]}
    assert ended == {lost: 'failed', kept: 'completed'}
    machine.until(lambda: machine.owners() == [kept], 'its handle is given back')
    machine.settle()
    shown = {arq['uuid']: arq for arq in guest.shown()}
    assert shown[kept]['state'] == 'Bound'
    assert shown[lost]['state'] == 'BindFailed'
    assert shown[lost]['attach_handle_uuid'] is None or not obstacle.exists()
    guest.delete()
    machine.until(guest.gone)
    machine.settle()
    assert machine.prepared() == machine.owners() == []


def test_an_agent_that_lost_its_memory_is_told_what_to_rebuild(
    machine: Machine,
) -> None:
    guest, handles = boot_guest(machine)
    machine.power_cycle()
    shutil.rmtree(machine.directory / 'agent')
    machine.start_agent()
    machine.until(lambda: completed(guest) == 4, 'Nova hears that they are bound again')
    assert {file.name for file in machine.files.iterdir()} == set(handles.values())
    assert all_bound(machine, guest)


def test_an_agent_that_is_killed_without_a_boot_disturbs_nobody(
    machine: Machine,
) -> None:
    guest, _handles = boot_guest(machine)
    assert machine.agent is not None
    machine.agent.kill()
    agent = machine.start_agent()
    machine.until(lambda: 'Reported' in machine.log(agent), 'it reports')
    assert all_bound(machine, guest)
    assert completed(guest) == 2
    guest.delete()
    machine.until(guest.gone)
    machine.settle()
    assert machine.prepared() == []


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_no_broker_at_all(tmp_path: Path, concurrency: str) -> None:
    """All is rebuilt, and an agent that still waits for the bus can be ended."""
    nowhere = f'rabbit://guest:guest@127.0.0.1:{free_port()}/'
    machine = Machine(tmp_path, nowhere, concurrency)
    cache = Cache(machine.directory / 'agent')
    known = handle('fa4f:0c:00.0', 'left-before-the-boot')
    cache.intend([known])
    cache.ready([known.uuid], 'boot-0')
    agent = machine.begin_agent()
    machine.until(lambda: machine.prepared() == [known.arq_uuid], 'it is rebuilt')
    assert agent.end() == 0
    assert 'before it was ready' in machine.log(agent)
    assert 'Traceback' not in machine.log(agent)
