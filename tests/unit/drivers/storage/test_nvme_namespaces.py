# SPDX-License-Identifier: Apache-2.0
"""Tests of layouts of namespaces, which are the modes of NVMe drives."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.storage.nvme import NvmeDrive
from cyborg_lite.drivers.storage.nvme_namespaces import format_layout, parse_layout
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from tests.hosts import mount_tables
from tests.hosts.nvme_tools import CAPACITY, NvmeKernel
from tests.hosts.scans import find_device

_BOOT, _DRIVE = '0000:c1:00.0', '0000:c2:00.0'
_LAYOUT = 'CUSTOM_SSD_NAMESPACES_'

Make = Callable[..., NvmeDrive]


@pytest.fixture
def kernel(tmp_path: Path) -> NvmeKernel:
    return NvmeKernel('nvme-lvm', tmp_path)


@pytest.fixture
def make(kernel: NvmeKernel) -> Make:
    def build(*modes: str) -> NvmeDrive:
        host = Host('compute-1', kernel.root, kernel)
        options = {'offer_without_reset': False, 'modes': modes, 'drives': ['*']}
        return NvmeDrive(host, options)

    return build


def test_names_of_layouts() -> None:
    assert parse_layout(format_layout(16)) == 16
    assert [parse_layout(name) for name in ('namespaces-0', 'dc', '')] == [0, 0, 0]


def test_drive_without_declaration_has_no_modes(make: Make) -> None:
    device = find_device(make(), _DRIVE)
    assert make().modes(device) == ()
    assert not any(trait.startswith(_LAYOUT) for trait in device.root.traits)


def test_modes_contain_declared_layout(make: Make) -> None:
    driver = make('8086:0a54 = namespaces-3')
    device = find_device(driver, _DRIVE)
    assert device.root.traits[-1] == f'{_LAYOUT}1'
    modes = {mode.name: mode for mode in driver.modes(device)}
    assert list(modes) == [format_layout(count) for count in (1, 2, 3, 4, 8)]
    assert [name for name, mode in modes.items() if mode.is_current] == ['namespaces-1']
    (planned,) = modes['namespaces-3'].inventory
    assert (planned.resource_class, planned.total) == ('CUSTOM_SSD', 1)
    assert f'{_LAYOUT}3' in planned.traits
    assert driver.declared_mode(device) == 'namespaces-3'


def test_set_mode_creates_equal_namespaces(make: Make, kernel: NvmeKernel) -> None:
    driver = make(f'{_DRIVE} = namespaces-2')
    device = driver.set_mode(find_device(driver, _DRIVE), 'namespaces-2')
    assert device == find_device(driver, _DRIVE)
    assert device.root.traits[-1] == f'{_LAYOUT}2'
    directory = kernel.root / 'sys/bus/pci/devices' / _DRIVE / 'nvme/nvme1'
    sizes = {int((directory / f'nvme1n{n}/size').read_text()) for n in (1, 2)}
    (size,) = sizes
    assert size * 512 % (1 << 30) == 0
    assert CAPACITY - 2 * size * 512 < 2 << 30
    kernel.tools.commands.clear()
    driver.set_mode(device, 'namespaces-2')
    assert [command[1] for command in kernel.tools.commands] == ['list-ns']
    driver.set_mode(device, 'namespaces-1')
    assert any('--flbas=1' in command for command in kernel.tools.commands)


@pytest.mark.parametrize(
    ('field', 'value', 'words'),
    [
        ('oacs', 2, 'does not support namespace management'),
        ('nn', 1, 'can have 1 namespaces'),
        ('tnvmcap', 0, 'in 0 bytes'),
    ],
)
def test_unfit_drive_is_not_changed(
    make: Make, kernel: NvmeKernel, field: str, value: int, words: str
) -> None:
    kernel.tools.identity[field] = value
    driver = make(f'{_DRIVE} = namespaces-2')
    with pytest.raises(DriverError, match=words):
        driver.set_mode(find_device(driver, _DRIVE), 'namespaces-2')
    names = [command[1] for command in kernel.tools.commands]
    assert names == ['list-ns', 'id-ctrl']


def test_drive_of_host_is_not_changed(make: Make, kernel: NvmeKernel) -> None:
    driver = make('* = namespaces-2')
    with pytest.raises(DriverError, match='in use by the host'):
        driver.set_mode(find_device(driver, _BOOT), 'namespaces-2')
    assert kernel.tools.commands == []


def test_drive_in_guest_keeps_trait_and_is_busy(make: Make, kernel: NvmeKernel) -> None:
    driver = make('* = namespaces-2')
    before = driver.set_mode(find_device(driver, _DRIVE), 'namespaces-2')
    kernel.attach(kernel.root, _DRIVE)
    assert find_device(driver, _DRIVE).root.traits == before.root.traits
    successor = make('* = namespaces-2')
    successor.restore_device(before)
    assert find_device(successor, _DRIVE).root.traits == before.root.traits
    assert successor.modes(before) == ()
    with pytest.raises(DeviceBusy, match='not to nvme'):
        successor.set_mode(before, 'namespaces-2')


def test_drive_that_is_being_scanned_is_not_changed(
    make: Make, kernel: NvmeKernel
) -> None:
    driver = make('* = namespaces-2')
    device = driver.set_mode(find_device(driver, _DRIVE), 'namespaces-2')
    directory = kernel.root / 'sys/bus/pci/devices' / _DRIVE / 'nvme/nvme1'
    kernel.namespaces.list_unseen = lambda: [3]
    with pytest.raises(DeviceBusy, match='cannot be found'):
        driver.set_mode(device, 'namespaces-4')
    assert len(list(directory.glob('nvme1n*'))) == 2


def test_unknown_mode_is_refused(make: Make) -> None:
    driver = make('* = namespaces-2')
    with pytest.raises(DriverError, match='has no mode dc'):
        driver.set_mode(find_device(driver, _DRIVE), 'dc')


def test_layout_is_not_set_without_known_root(make: Make, kernel: NvmeKernel) -> None:
    """This includes a drive without namespaces, as an interrupted change leaves it."""
    driver = make('8086:0a54 = namespaces-2')
    device = find_device(driver, _DRIVE)
    kernel.namespaces.run(('nvme', 'delete-ns', '/dev/nvme1', '--namespace-id=1'))
    mount_tables.replace_tables(kernel.root, 'of a container')
    with pytest.raises(DriverError, match='it may be the system disk'):
        driver.set_mode(device, 'namespaces-2')
    assert not any(command[1] == 'create-ns' for command in kernel.tools.commands)
