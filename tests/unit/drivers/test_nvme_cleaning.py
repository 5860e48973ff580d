# SPDX-License-Identifier: Apache-2.0
"""Tests of the erase of NVMe drives."""

import shutil
import threading
from pathlib import Path

import pytest

from cyborg_lite.drivers.host import privileges
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvme_cleaning import CleanMethod, NvmeCleaner
from cyborg_lite.drivers.storage.nvme import NvmeDrive
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.hosts import mount_tables, sysfs_tree
from tests.hosts.nvme_tools import NvmeTools
from tests.hosts.privileged_process import PRIVILEGES
from tests.hosts.scans import find_device

_BOOT, _FREE = '0000:c1:00.0', '0000:c2:00.0'
_AUTO = CleanMethod.AUTO


@pytest.fixture
def drive(tmp_path: Path) -> PciFunction:
    sysfs_tree.build('nvme-lvm', tmp_path)
    return PciFunction(Host('compute-1', tmp_path), _FREE)


def clean(
    drive: PciFunction, tools: NvmeTools, method: CleanMethod = _AUTO
) -> list[str]:
    """Run all steps; return the tool of each step."""
    cleaner = NvmeCleaner(tools, method, poll_seconds=0)
    steps = cleaner.list_steps(drive)
    return [cleaner.run_step(drive, step.name) for step in steps]


@pytest.mark.parametrize(
    ('tools', 'method', 'erases'),
    [
        (NvmeTools(sanicap=3), _AUTO, ['nvme sanitize /dev/nvme1 --sanact=4']),
        (NvmeTools(sanicap=2), _AUTO, ['nvme sanitize /dev/nvme1 --sanact=2']),
        (NvmeTools(oacs=2, fna=4), _AUTO, ['nvme format /dev/nvme1n1 --ses=2 --force']),
        (NvmeTools(oacs=2), _AUTO, ['nvme format /dev/nvme1n1 --ses=1 --force']),
        (NvmeTools(), _AUTO, ['blkdiscard --zeroout /dev/nvme1n1']),
        (
            NvmeTools(sanicap=3, oacs=2),
            CleanMethod.FORMAT,
            ['nvme format /dev/nvme1n1 --ses=1 --force'],
        ),
        (
            NvmeTools(sanicap=3),
            CleanMethod.DISCARD,
            ['blkdiscard --zeroout /dev/nvme1n1'],
        ),
    ],
)
def test_clean_uses_best_supported_method(
    drive: PciFunction, tools: NvmeTools, method: CleanMethod, erases: list[str]
) -> None:
    erase_tool, verify_tool = clean(drive, tools, method)
    assert tools.erases() == erases
    assert erase_tool in (
        'nvme version 2.8 (git 2.8)',
        'blkdiscard from util-linux 2.38.1',
    )
    assert verify_tool == ''
    allowed = privileges.parse((PRIVILEGES / 'nvme_driver.conf').read_text())
    for tool, *arguments in tools.commands:
        assert allowed.allows_run(f'/usr/sbin/{tool}', arguments)


def test_clean_unsupported_method_fails(drive: PciFunction) -> None:
    with pytest.raises(DriverError, match='does not support sanitize'):
        clean(drive, NvmeTools(oacs=2), CleanMethod.SANITIZE)


def test_sanitize_running_is_not_started_again(drive: PciFunction) -> None:
    tools = NvmeTools(sanicap=1)
    tools.sanitizing = 3
    clean(drive, tools)
    assert tools.erases() == []


def test_sanitize_failure_names_status(drive: PciFunction) -> None:
    tools = NvmeTools(sanicap=1)
    tools.last_status = 3
    with pytest.raises(DriverError, match='ended with status 3'):
        clean(drive, tools)


def test_failing_tool_names_command_and_output(drive: PciFunction) -> None:
    tools = NvmeTools(oacs=2)
    tools.failures['format'] = 'NVMe status: Access Denied(0x4286)'
    with pytest.raises(DriverError, match=r'nvme format .* Access Denied'):
        clean(drive, tools)


def test_drive_of_guest_or_host_is_not_erased(drive: PciFunction) -> None:
    tools = NvmeTools(sanicap=3)
    cleaner = NvmeCleaner(tools, _AUTO, poll_seconds=0)
    with pytest.raises(DriverError, match='/boot/efi is mounted'):
        cleaner.run_step(PciFunction(drive.host, _BOOT), 'sanitize-crypto')
    directory = (drive.host.root / 'sys/bus/pci/devices' / _FREE).resolve()
    (directory / 'driver').unlink()
    with pytest.raises(DeviceBusy, match='bound to no driver'):
        cleaner.run_step(drive, 'discard')
    assert tools.commands == []


def test_drive_without_namespaces_waits(drive: PciFunction) -> None:
    directory = (drive.host.root / 'sys/bus/pci/devices' / _FREE).resolve()
    for namespace in (directory / 'nvme/nvme1').glob('nvme1n*'):
        shutil.rmtree(namespace)
    with pytest.raises(DeviceBusy, match='namespaces cannot be found'):
        clean(drive, NvmeTools())


def test_driver_declares_policy_and_erases(drive: PciFunction) -> None:
    tools = NvmeTools(sanicap=1)
    tools.polls = 0
    options = {'offer_without_reset': False, 'drives': ['*'], 'cleaning': 'one-time'}
    driver = NvmeDrive(drive.host, options)
    driver.cleaner = NvmeCleaner(tools, _AUTO)
    device = find_device(driver, _FREE)
    (handle,) = device.root.handles
    assert handle.cleaning is CleaningPolicy.ONE_TIME
    unit = AllocatedHandle('u', '', 'h', device.root.name, 'X', _FREE, _FREE, 'PCI')
    erase, *_ = driver.list_clean_steps(unit)
    assert driver.run_clean_step(unit, erase.name, threading.Event())
    assert tools.erases() == ['nvme sanitize /dev/nvme1 --sanact=4']


@pytest.mark.parametrize('fault', mount_tables.FAULTS)
def test_drive_is_not_erased_without_known_root(drive: PciFunction, fault: str) -> None:
    tools = NvmeTools(sanicap=3)
    cleaner = NvmeCleaner(tools, _AUTO, poll_seconds=0)
    step = cleaner.list_steps(drive)[0]
    mount_tables.replace_tables(drive.host.root, fault)
    with pytest.raises(DriverError, match='it may be the system disk'):
        cleaner.run_step(drive, step.name)
    assert tools.erases() == []
