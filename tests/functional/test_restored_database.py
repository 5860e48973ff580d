# SPDX-License-Identifier: Apache-2.0
"""A database from before a bind is put back while guests run.

Real daemons, a real Placement and an emulated kernel. The agent remembers the bind, so
the database is in quarantine. After it guests keep their devices until Nova and
Placement agree that they are gone.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from devstack.launcher.processes import Child
from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts.drive_host import DRIVE, DriveHost
from tests.servers import rabbitmq
from tests.servers.stack import Instance
from tests.servers.vgpu_machine import GENERATIONS, Generation, VgpuHost, run_cloud

_QAT: Final = '0000:e8:00.0'
_CONTENT: Final = 'data of the guest'


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyCloud]:
    with (
        rabbitmq.virtual_host() as url,
        run_cloud(tmp_path_factory.mktemp('cloud'), url) as running,
    ):
        yield running


class Backup:
    """A copy of the SQLite database of a cloud."""

    def __init__(self, cloud: FaultyCloud) -> None:
        self._cloud = cloud
        self._file = Path(cloud.connection.removeprefix('sqlite:///'))
        self._copy = self._file.with_suffix('.backup')
        self._stop_conductor()
        self._copy.mkdir()
        for file in self._list_files():
            shutil.copy(file, self._copy)
        self._start_conductor()

    def restore(self) -> Child:
        """Put the copy back, and start the conductor on it."""
        self._stop_conductor()
        for file in self._list_files():
            file.unlink()
        for file in self._copy.iterdir():
            shutil.copy(file, self._file.parent)
        return self._start_conductor()

    def _list_files(self) -> list[Path]:
        name = self._file.name
        return [file for file in self._file.parent.glob(f'{name}*') if file.is_file()]

    def _find_conductor(self) -> Child:
        (child,) = (item for item in self._cloud.children if 'conductor' in item.name)
        return child

    def _stop_conductor(self) -> None:
        self._find_conductor().end()

    def _start_conductor(self) -> Child:
        return self._cloud.restart(self._find_conductor(), 'conductor')


class SharedHost(VgpuHost):
    """Host whose agent creates the virtual functions of a QAT card on demand."""

    def begin_agent(self, patience: int = 60, timeout: int = 30) -> Child:
        self.settings = {'enabled_drivers': 'intel_qat_driver'}
        self.cloud.configure({'intel_qat_driver': {'virtual_functions': f'{_QAT} = 4'}})
        return super().begin_agent(patience, timeout)


class PatientHost(DriveHost):
    """Host with a drive whose cleaning run may wait."""

    is_settled = True  # False: a job waits

    def settle(self) -> None:
        if self.is_settled:
            super().settle()


def find_objects(host: VgpuHost) -> set[str]:
    """Return the vGPUs and the functions of a host."""
    return {str(vgpu) for vgpu in host.list_vgpus()} | host.functions()


def count_reserved(host: VgpuHost, provider: str) -> int:
    (inventory,) = host.cloud.inventory(provider).values()
    return inventory['reserved']


def restart_agent(host: VgpuHost) -> None:
    host.kill_agent()
    host.start_agent()


def wait_until_remembered(cloud: FaultyCloud, state_path: Path) -> None:
    """Wait until an agent remembers the latest step of the database."""
    file = state_path / 'database.json'

    def remembers_latest() -> bool:
        ((step,),) = cloud.rows('SELECT max(id) FROM arq_events')
        return file.exists() and json.loads(file.read_text())['content']['step'] == step

    cloud.until(remembers_latest, 'the agent remembers the latest step')


def wait_for_quarantine(cloud: FaultyCloud, conductor: Child) -> None:
    cloud.until(lambda: 'has lost changes' in cloud.log(conductor), 'quarantine')


def end_quarantine(cloud: FaultyCloud) -> None:
    database = Database(cloud.connection)
    assert database.write(incarnations.end_quarantine) == 1
    database.close()


class Restored:
    """Host whose guest was booted after the backup that is put back."""

    def __init__(self, host: VgpuHost, boot: Callable[[], Instance]) -> None:
        self.host, self.cloud, self.boot = host, host.cloud, boot
        host.start_agent()
        host.settle()
        self.objects_before = find_objects(host)
        backup = Backup(self.cloud)
        self.guest = boot()
        host.settle()
        self.handles = list_handles(self.guest)
        self.cloud.nova.rules.servers[self.guest.uuid] = host.name
        self.objects = find_objects(host)
        self.reserved = count_reserved(host, self.guest.provider)  # foreign vGPUs
        assert self.objects != self.objects_before
        wait_until_remembered(self.cloud, host.directory / 'agent')
        self.conductor = backup.restore()
        wait_for_quarantine(self.cloud, self.conductor)

    def compare(self) -> list[str]:
        """Restart the agent, and wait for the lines about the kept handles."""
        before = len(self._list_lines())
        number = before + len(self.handles)
        restart_agent(self.host)
        self.cloud.until(lambda: len(self._list_lines()) >= number, 'handles are kept')
        return self._list_lines()[before:]

    def _list_lines(self) -> list[str]:
        lines = self.cloud.log(self.conductor).splitlines()
        return [line for line in lines if 'keeps handle' in line]

    def wait_for_reserved(self, number: int) -> None:
        self.cloud.until(
            lambda: (
                count_reserved(self.host, self.guest.provider) == self.reserved + number
            ),
            f'{number} units are reserved',
        )


def list_handles(guest: Instance) -> set[str]:
    return {str(arq['attach_handle_uuid']) for arq in guest.list_arqs()}


def check_guest_survives_restore(host: VgpuHost, boot: Callable[[], Instance]) -> None:
    """Restore the database under a guest, then end the guest."""
    restored = Restored(host, boot)
    cloud, guest = restored.cloud, restored.guest
    assert 'lost changes' in restored.compare()[0]
    restored.wait_for_reserved(len(restored.handles))
    assert find_objects(host) == restored.objects
    with pytest.raises(AssertionError, match='503'):
        guest.list_arqs()
    end_quarantine(cloud)

    line = restored.compare()[0]
    for name in ('WARNING', host.name, guest.uuid):
        assert name in line
    assert any(arq in line for arq in guest.arqs)
    assert any(handle in line for handle in restored.handles)
    restored.wait_for_reserved(len(restored.handles))
    assert find_objects(host) == restored.objects

    # A bind gets another handle.
    later = boot()
    assert not restored.handles & list_handles(later)
    host.end(later)
    assert find_objects(host) == restored.objects

    # The instance is gone, but its allocation stands.
    del cloud.nova.rules.servers[guest.uuid]
    restored.compare()
    assert find_objects(host) == restored.objects
    guest.deallocate()
    restart_agent(host)
    cloud.until(lambda: find_objects(host) == restored.objects_before, 'it is released')
    restored.wait_for_reserved(0)
    host.end(boot())


def test_restore_keeps_mdevs_of_guest(cloud: FaultyCloud, tmp_path: Path) -> None:
    with VgpuHost(cloud, tmp_path, GENERATIONS['mdevs']) as host:
        check_guest_survives_restore(host, lambda: host.boot_bound(0))


def test_restore_keeps_pci_function_of_guest(
    cloud: FaultyCloud, tmp_path: Path
) -> None:
    generation = Generation('qat-services', (), (_QAT, _QAT), (1, 1))
    with SharedHost(cloud, tmp_path, generation) as host:
        host.kernel.disable(_QAT)
        # The other cards have all of their functions.
        check_guest_survives_restore(host, lambda: host.boot_bound(0, 'CUSTOM_QAT'))


def list_changes(drive: Path) -> list[str]:
    """Return the commands that a drive has received, without those that only read."""
    lines = (drive / 'commands').read_text().splitlines()
    return [line for line in lines if not line.startswith('smart-log')]


def test_restore_erases_no_drive_of_guest(cloud: FaultyCloud, tmp_path: Path) -> None:
    """The backup is older than the drive, which is erased before its first use."""
    backup = Backup(cloud)
    with PatientHost(cloud, tmp_path / 'host') as host:
        host.settings['nvme_driver'] = {'cleaning': 'always'}
        host.switch_on()
        host.wait_for('clean')
        guest = cloud.boot('CUSTOM_SSD')
        cloud.until(guest.is_resolved, 'Nova receives the event')
        cloud.nova.rules.servers[guest.uuid] = host.name
        # The guest is stopped, so its host has the drive.
        host.content.write_text(_CONTENT)
        commands = list_changes(host.drive)
        wait_until_remembered(cloud, Path(str(host.options['agent']['state_path'])))

        host.switch_off()
        conductor = backup.restore()
        host.is_settled = False
        host.switch_on()
        wait_for_quarantine(cloud, conductor)
        cloud.until(lambda: host.cleanings()['units'], 'the drive is reported')
        assert host.cleanings()['units'][0]['state'] == 'dirty'
        end_quarantine(cloud)
        cloud.until(lambda: 'does not clean handle' in cloud.log(conductor))
        (line,) = (
            line
            for line in cloud.log(conductor).splitlines()
            if 'does not clean handle' in line
        )
        for name in ('WARNING', host.name, DRIVE, guest.uuid):
            assert name in line
        assert host.cleanings()['units'][0]['state'] == 'dirty'
        assert host.providers()[DRIVE].free == 0
        later = Instance(cloud, guest.provider, {'CUSTOM_SSD': 1})
        with pytest.raises(AssertionError, match='409'):
            later.allocate()
        assert host.content.read_text() == _CONTENT
        assert list_changes(host.drive) == commands

        del cloud.nova.rules.servers[guest.uuid]
        guest.deallocate()
        host.is_settled = True
        host.wait_for('clean')
        assert host.content.read_text() == ''
        assert host.providers()[DRIVE].free == 1
