# SPDX-License-Identifier: Apache-2.0
"""The drill of a restored database: backup, changes, restore; ``recover`` or none.

Real daemons, a real Placement and an emulated kernel. The agent remembers the changes,
so the database is in quarantine.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from devstack.launcher.processes import Child
from tests.builders.database_backups import Backup, back_up, restore
from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts.drive_host import DRIVE, DriveHost
from tests.servers import hasty_manage, rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.mode_host import QAT, ModeHost
from tests.servers.stack import ADMIN, Instance, expect, find_json, lines_of
from tests.servers.vgpu_machine import GENERATIONS, Generation, VgpuHost

_CONTENT: Final = 'data of the guest'
QAT_HOST: Final = Generation('qat-services', (), (QAT, QAT), (1, 1))


class Drill(FaultyCloud):
    """Cloud whose database is copied and put back."""

    @property
    def conductor(self) -> Child:
        (conductor,) = (item for item in self.children if 'conductor' in item.name)
        return conductor

    @contextmanager
    def between_conductors(self) -> Iterator[Database]:
        """Stop the conductor, yield the database, and start the conductor."""
        conductor = self.conductor
        conductor.end()
        with closing(Database(self.connection)) as database:
            yield database
        self.restart(conductor, 'conductor')

    def back_up(self) -> Backup:
        with self.between_conductors() as database:
            return back_up(database)

    def restore(self, backup: Backup, directory: Path) -> None:
        """Restore the database when the agent remembers a change that it lacks.

        :param directory: of the host
        """

        def remembers_last_step() -> bool:
            ((last,),) = self.rows('SELECT MAX(id) FROM arq_events')
            texts = [file.read_text() for file in directory.rglob('database.json')]
            return any(f'"step":{last},' in text.replace(' ', '') for text in texts)

        self.until(remembers_last_step, 'the agent remembers the last step')
        with self.between_conductors() as database:
            restore(database, backup)
        self.until(self.list_quarantines, 'the quarantine begins')

    def list_quarantines(self) -> list[tuple[Any, ...]]:
        return self.rows('SELECT id FROM incarnations WHERE began_at IS NULL')

    def end_quarantine(self) -> None:
        with closing(Database(self.connection)) as database:
            assert database.write(incarnations.end_quarantine) == 1

    def wait_for_line(self, word: str) -> str:
        """Return the only line of the conductor's log with a word, once it is there."""
        (line,) = self.until(
            lambda: lines_of(self.conductor, word), f'{word} is logged'
        )
        return str(line)

    # Any: JSON.
    def recover(self, *arguments: str) -> tuple[int | None, list[dict[str, Any]]]:
        """Run the command; return its exit status and its rows."""
        command = ('manage', 'recover', '--json')
        status, output = self.run(*command, *arguments, module=hasty_manage.__name__)
        return status, find_json(output)

    def bind_new(self, profile: str, provider: str, **resources: int) -> Instance:
        """Boot an instance that Nova lists, with a profile that the backup has."""
        ((name, count),) = resources.items()
        guest = self.boot(name, count, provider=provider, profile=profile)
        guest.wait_until_bound()
        guest.appear_in_nova()
        return guest


@pytest.fixture
def cloud(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Drill]:
    """Yield a cloud on the kind of database that the test names.

    ``tests/functional/unit_on_servers`` runs every statement of a recovery on both
    servers.
    """
    directory, kind = tmp_path_factory.mktemp('cloud'), request.param
    file = nullcontext(f'sqlite:///{directory}/db.sqlite')
    with (
        rabbitmq.virtual_host() as broker,
        file if kind == 'sqlite' else contextmanager(fresh_database)(kind) as url,
        Drill(directory, broker, url) as drill,
    ):
        drill.migrate()
        drill.start('conductor')
        drill.start('api')
        yield drill


def show(guest: Instance) -> dict[str, tuple[Any, ...]]:
    """Return what Nova needs of the ARQs of an instance, by uuid."""
    return {
        arq['uuid']: (arq['state'], arq['attach_handle_uuid'], arq['device_rp_uuid'])
        for arq in guest.list_arqs()
    }


def list_vgpus(host: VgpuHost) -> set[str]:
    return {str(vgpu) for vgpu in host.list_vgpus()}


def list_objects(host: VgpuHost) -> set[str]:
    """Return the vGPUs and the functions of a host."""
    return list_vgpus(host) | host.functions()


def build_vgpu_host(cloud: Drill, directory: Path) -> tuple[VgpuHost, str]:
    """Return a host, and the class of which it makes units on demand."""
    return VgpuHost(cloud, directory, GENERATIONS['mdevs']), 'VGPU'


def build_qat_host(cloud: Drill, directory: Path) -> tuple[VgpuHost, str]:
    """Return a host whose other cards have all of their functions, and a class."""
    host = ModeHost(cloud, directory, QAT_HOST)
    host.drivers = {'intel_qat_driver': {'virtual_functions': f'{QAT} = 4'}}
    return host, 'CUSTOM_QAT'


@pytest.mark.parametrize('cloud', ['mariadb'], indirect=True)
def test_recover_brings_arqs_of_living_guests_back(
    cloud: Drill, tmp_path: Path
) -> None:
    with VgpuHost(cloud, tmp_path, GENERATIONS['mdevs']) as host:
        host.start_agent()
        host.settle()
        vgpus = list_vgpus(host)
        guests, former = [host.boot_bound(0)], host.boot_bound(1)
        guests[0].appear_in_nova()
        host.settle()
        profiles = [cloud.create_profile('VGPU', 2) for _ in range(2)]
        backup = cloud.back_up()

        # The card of the former guest gets another one; the database forgets that.
        host.end(former)
        providers = former.provider, guests[0].provider
        for profile, provider in zip(profiles, providers, strict=True):
            guests.append(cloud.bind_new(profile, provider, VGPU=2))
        host.settle()
        before, vgpus_in_use = [show(guest) for guest in guests], list_vgpus(host)
        cloud.restore(backup, tmp_path)

        status, rows = cloud.recover()
        assert status == 1
        rebuilt = {row['instance'] for row in rows if row['action'] == 'rebuild'}
        assert rebuilt == {guest.uuid for guest in guests[1:]}
        status, rows = cloud.recover('--apply')
        assert (status, {row['outcome'] for row in rows}) == (0, {'done'})
        assert cloud.list_quarantines() == []
        assert [show(guest) for guest in guests] == before
        assert former.list_arqs() == []
        assert list_vgpus(host) == vgpus_in_use
        assert cloud.recover() == (0, [])

        for guest in guests:
            host.end(guest)
        assert list_vgpus(host) == vgpus


@pytest.mark.parametrize('cloud', ['postgresql'], indirect=True)
def test_recover_fills_empty_database(cloud: Drill, tmp_path: Path) -> None:
    empty = cloud.back_up()
    with VgpuHost(cloud, tmp_path, GENERATIONS['mdevs']) as host:
        host.start_agent()
        host.settle()
        vgpus = list_vgpus(host)
        guest = host.boot_bound(0)
        guest.appear_in_nova()
        host.settle()
        before, vgpus_in_use = show(guest), list_vgpus(host)
        newest = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'}
        path = '/v2/device_profiles'
        profiles = expect(cloud.api(newest).ask('GET', path), 200)['device_profiles']
        cloud.restore(empty, tmp_path)
        expect(cloud.api(newest).ask('POST', path, profiles), 201)
        cloud.until(
            lambda: 'rebuild' in [row['action'] for row in cloud.recover()[1]],
            'the host has reported its devices',
        )
        assert cloud.recover('--apply')[0] == 0
        assert show(guest) == before
        assert list_vgpus(host) == vgpus_in_use
        host.end(guest)
        assert list_vgpus(host) == vgpus


@pytest.mark.parametrize('cloud', ['sqlite'], indirect=True)
def test_recover_erases_no_drive_in_use(cloud: Drill, tmp_path: Path) -> None:
    """The backup has the job of a cleaning run that has ended since.

    No agent prepares the drive: the allocation and Nova decide.
    """
    with DriveHost(cloud, tmp_path / 'host') as host:
        host.switch_on()
        provider = cloud.provider_of('CUSTOM_SSD')
        profile = cloud.create_profile('CUSTOM_SSD')
        host.settle()
        former = cloud.bind_new(profile, provider, CUSTOM_SSD=1)
        host.switch_off()
        former.disappear_from_nova()
        former.delete()
        backup = cloud.back_up()
        host.switch_on()
        host.wait_for('clean')
        guest = cloud.bind_new(profile, provider, CUSTOM_SSD=1)
        host.content.write_text(_CONTENT)
        before = list(show(guest).values())
        cloud.restore(backup, tmp_path)

        status, rows = cloud.recover('--apply')
        assert (status, [row['action'] for row in rows]) == (0, ['rebuild'])
        host.settle()
        assert list(show(guest).values()) == before
        assert host.content.read_text() == _CONTENT
        guest.disappear_from_nova()
        guest.delete()
        host.wait_for('clean')
        assert host.content.read_text() == ''
        assert DRIVE in host.providers()


@pytest.mark.parametrize('cloud', ['sqlite'], indirect=True)
def test_recover_keeps_mode_set_after_backup(cloud: Drill, tmp_path: Path) -> None:
    with ModeHost(cloud, tmp_path, QAT_HOST) as host:
        host.kernel.disable(QAT)
        host.drivers = {'intel_qat_driver': {'virtual_functions': f'{QAT} = 4'}}
        host.start_agent()
        host.wait_for_mode('dc')
        profile = cloud.create_profile('CUSTOM_QAT')
        card = f'{host.name}_{QAT}'
        offer = cloud.until(lambda: cloud.providers().get(card), 'the card is offered')
        provider = str(offer['uuid'])
        host.settle()
        backup = cloud.back_up()

        assert host.change_mode('sym;asym').status == 202
        host.wait_for_mode('sym;asym')
        cloud.until(
            lambda: host.offers()[''][0] and 'SYM' in str(host.offers()),
            'Placement has the new mode',
        )
        guest = cloud.bind_new(profile, provider, CUSTOM_QAT=1)
        before, functions, offers = show(guest), host.functions(), host.offers()
        cloud.restore(backup, tmp_path)
        cloud.until(lambda: cloud.recover('--apply')[0] == 0, 'the host has reported')
        host.settle()
        assert (show(guest), host.functions()) == (before, functions)
        assert host.modes()['current'] == 'sym;asym'
        cloud.until(lambda: host.offers() == offers, 'Placement has the later mode')
        host.end(guest)


# --- without the command ---


class PatientHost(DriveHost):
    """Host with a drive whose cleaning run may wait."""

    is_settled = True  # False: a job waits

    def settle(self) -> None:
        if self.is_settled:
            super().settle()


def count_reserved(guest: Instance) -> int:
    """Return the reserved units of the provider of an instance."""
    (inventory,) = guest.cloud.inventory(guest.provider).values()
    return inventory['reserved']


def restart_agent(host: VgpuHost, cloud: Drill, number: int) -> str:
    """Restart the agent, and return the first new line about handles that are kept.

    :param number: of these handles
    """
    before = len(lines_of(cloud.conductor, 'keeps handle'))
    host.kill_agent()
    host.start_agent()
    cloud.until(
        lambda: len(lines_of(cloud.conductor, 'keeps handle')) >= before + number,
        'handles are kept',
    )
    return lines_of(cloud.conductor, 'keeps handle')[before]


@pytest.mark.parametrize('cloud', ['sqlite'], indirect=True)
@pytest.mark.parametrize('build_host', [build_vgpu_host, build_qat_host])
def test_restore_keeps_units_of_guest(
    cloud: Drill,
    tmp_path: Path,
    build_host: Callable[[Drill, Path], tuple[VgpuHost, str]],
) -> None:
    host, unit = build_host(cloud, tmp_path)
    with host:
        if unit == 'CUSTOM_QAT':
            host.kernel.disable(QAT)  # so that its agent makes functions
        host.start_agent()
        host.settle()
        before = list_objects(host)
        backup = cloud.back_up()
        guest = host.boot_bound(0, unit)
        guest.appear_in_nova()
        host.settle()
        reserved, in_use = count_reserved(guest), list_objects(host)
        assert in_use != before
        handles = {str(arq['attach_handle_uuid']) for arq in guest.list_arqs()}
        cloud.restore(backup, tmp_path)

        assert 'lost changes' in restart_agent(host, cloud, len(handles))
        with pytest.raises(AssertionError, match='503'):
            guest.list_arqs()
        cloud.end_quarantine()
        line = restart_agent(host, cloud, len(handles))
        assert all(name in line for name in ('WARNING', host.name, guest.uuid))
        assert any(arq in line for arq in guest.arqs)
        assert any(handle in line for handle in handles)
        cloud.until(
            lambda: count_reserved(guest) == reserved + len(handles),
            'the units of the guest are reserved',
        )
        assert list_objects(host) == in_use

        # A bind gets another handle.
        later = host.boot_bound(0, unit)
        assert not handles & {arq['attach_handle_uuid'] for arq in later.list_arqs()}
        host.end(later)
        assert list_objects(host) == in_use
        # The instance is gone, but its allocation stands.
        guest.disappear_from_nova()
        restart_agent(host, cloud, len(handles))
        assert list_objects(host) == in_use
        guest.deallocate()
        host.kill_agent()
        host.start_agent()
        cloud.until(lambda: list_objects(host) == before, 'it is released')
        cloud.until(lambda: count_reserved(guest) == reserved, 'its units are free')
        host.end(host.boot_bound(0, unit))


@pytest.mark.parametrize('cloud', ['sqlite'], indirect=True)
def test_restore_erases_no_drive_of_guest(cloud: Drill, tmp_path: Path) -> None:
    """The backup is older than the drive, which is erased before its first use."""
    backup = cloud.back_up()
    with PatientHost(cloud, tmp_path / 'host') as host:
        host.settings['nvme_driver'] = {'cleaning': 'always'}
        host.switch_on()
        host.wait_for('clean')
        guest = cloud.boot_bound('CUSTOM_SSD')
        guest.appear_in_nova()
        # The guest is stopped, so its host has the drive.
        host.content.write_text(_CONTENT)
        commands = list_changes(host.drive)
        host.is_settled = False
        cloud.restore(backup, tmp_path)

        host.switch_on()
        cloud.until(lambda: host.cleanings()['units'], 'the drive is reported')
        assert host.cleanings()['units'][0]['state'] == 'dirty'
        cloud.end_quarantine()
        line = cloud.wait_for_line('does not clean handle')
        for name in ('WARNING', host.name, DRIVE, guest.uuid):
            assert name in line
        assert host.cleanings()['units'][0]['state'] == 'dirty'
        assert host.providers()[DRIVE].free == 0
        later = Instance(cloud, guest.provider, {'CUSTOM_SSD': 1})
        with pytest.raises(AssertionError, match='409'):
            later.allocate()
        assert host.content.read_text() == _CONTENT
        assert list_changes(host.drive) == commands

        guest.disappear_from_nova()
        guest.deallocate()
        host.is_settled = True
        host.wait_for('clean')
        assert host.content.read_text() == ''
        assert host.providers()[DRIVE].free == 1


def list_changes(drive: Path) -> list[str]:
    """Return the commands that a drive has received, without those that only read."""
    lines = (drive / 'commands').read_text().splitlines()
    return [line for line in lines if not line.startswith('smart-log')]
