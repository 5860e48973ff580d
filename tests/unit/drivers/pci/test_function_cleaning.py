# SPDX-License-Identifier: Apache-2.0
"""Tests of the cleaning steps of any PCI function."""

import errno
import json
import threading
from pathlib import Path
from typing import Final, Self

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.pci.generic import GenericPci
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError, ResetFailed
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.hosts.kernel import FakeKernel
from tests.hosts.nvme_tools import NvmeKernel
from tests.hosts.scans import build_handles, find_device

_PARENT, _VIRTUAL, _DRIVE = '0000:21:00.0', '0000:21:00.1', '0000:c2:00.0'
_GPU: Final = '0000:3b:00.0'
_ABORT: Final = threading.Event()


class Site:
    """A host with the first handle of a device that its driver offers."""

    def __init__(self, driver: PciDriver, kernel: FakeKernel, address: str) -> None:
        self.kernel = kernel
        self.driver = driver
        self.handle = self._find_handle(address)

    @classmethod
    def allow(cls, kernel: FakeKernel, address: str, vendor: str) -> Self:
        """Return the site of an operator who allows the functions of a vendor."""
        entry = {'vendor_id': vendor, 'cleaning': 'after-use'}
        options = {'offer_without_reset': True, 'device_spec': [json.dumps(entry)]}
        driver = GenericPci(Host('compute-1', kernel.root, kernel), options)
        return cls(driver, kernel, address)

    def _find_handle(self, address: str) -> AllocatedHandle:
        device = find_device(self.driver, address)
        assert device.root.handles[0].cleaning is CleaningPolicy.AFTER_USE
        return build_handles(device)[0]

    def clean(self) -> list[str]:
        steps = self.driver.list_clean_steps(self.handle)
        return [
            self.driver.run_clean_step(self.handle, step.name, _ABORT) for step in steps
        ]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.allow(FakeKernel('generic-pci', tmp_path), _PARENT, '1d55')


def test_clean_resets_function(site: Site) -> None:
    assert site.clean() == ['flr: same ids, class, BARs, subsystem']
    path = f'sys/bus/pci/devices/{_VIRTUAL}/reset'
    assert site.kernel.written == [(path, '1')]


@pytest.fixture
def gpu(tmp_path: Path) -> Site:
    """Return a GPU that the host has bound to its driver."""
    kernel = FakeKernel('t4-mdev', tmp_path)
    options = {'offer_without_reset': False, 'cleaning': 'after-use'}
    driver = NvidiaGpu(Host('compute-1', tmp_path, kernel), options)
    return Site(driver, kernel, _GPU)


def test_bound_function_leaves_its_driver_for_reset(gpu: Site) -> None:
    (proof,) = gpu.clean()
    assert proof.endswith('link x16, serial number, VBIOS, driver nvidia')
    assert gpu.kernel.written == [
        ('sys/bus/pci/drivers/nvidia/unbind', _GPU),
        (f'sys/bus/pci/devices/{_GPU}/reset', '1'),
        ('sys/bus/pci/drivers_probe', _GPU),
    ]


_CHANGES: Final = {
    'current_link_width': (b'8\n', 'its link was x16 at 8000 MT/s, and is x8'),
    'current_link_speed': (b'2.5 GT/s PCIe\n', 'and is x16 at 2500 MT/s'),
    'config': (b'\xff' * 64, 'config space does not answer'),
}


@pytest.mark.parametrize('name', _CHANGES)
def test_other_function_after_reset_is_not_clean(gpu: Site, name: str) -> None:
    content, reason = _CHANGES[name]
    gpu.kernel.reset_effects[name] = content
    with pytest.raises(ResetFailed, match=reason):
        gpu.clean()
    # The host driver finds the card anyway.
    assert gpu.kernel.written[-1] == ('sys/bus/pci/drivers_probe', _GPU)


@pytest.mark.parametrize('name', ['ids', 'class', 'BARs', 'subsystem'])
def test_changed_register_after_reset_is_not_clean(gpu: Site, name: str) -> None:
    offset = {'ids': 2, 'class': 9, 'BARs': 0x14, 'subsystem': 0x2E}[name]
    path = gpu.kernel.root / 'sys/bus/pci/devices' / _GPU / 'config'
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    gpu.kernel.reset_effects['config'] = bytes(content)
    with pytest.raises(ResetFailed, match=f'its {name} have changed'):
        gpu.clean()


def test_changed_firmware_after_reset_is_not_clean(gpu: Site) -> None:
    information = gpu.kernel.root / 'proc/driver/nvidia/gpus' / _GPU / 'information'
    text = information.read_text().replace('90.04', '91.04')
    gpu.kernel.probe_effects[information] = text
    with pytest.raises(ResetFailed, match=r'its VBIOS was 90\.04.*, and is 91'):
        gpu.clean()


def test_unreadable_firmware_after_reset_is_not_clean(gpu: Site) -> None:
    information = gpu.kernel.root / 'proc/driver/nvidia/gpus' / _GPU / 'information'
    lines = information.read_text().splitlines(keepends=True)
    shorter = ''.join(line for line in lines if 'Video BIOS' not in line)
    gpu.kernel.probe_effects[information] = shorter
    with pytest.raises(ResetFailed, match=r'VBIOS was 90\.04.* cannot be read now'):
        gpu.clean()


def test_function_that_stays_unbound_is_not_clean(gpu: Site) -> None:
    gpu.kernel.refuse('drivers_probe', errno.EIO)
    with pytest.raises(DriverError, match='drivers_probe fails'):
        gpu.clean()


def test_function_without_reset_has_no_cleaning_policy(tmp_path: Path) -> None:
    kernel = FakeKernel('t4-mdev', tmp_path)
    directory = (tmp_path / 'sys/bus/pci/devices' / _GPU).resolve()
    for name in ('reset', 'reset_method'):
        (directory / name).unlink()
    options = {'offer_without_reset': True, 'cleaning': 'after-use'}
    driver = NvidiaGpu(Host('compute-1', tmp_path, kernel), options)
    (handle,) = find_device(driver, _GPU).root.handles
    assert handle.cleaning is CleaningPolicy.NEVER


def test_clean_waits_while_guest_has_function(site: Site) -> None:
    site.kernel.open('/dev/vfio/62')
    with pytest.raises(DeviceBusy, match='open in process 4242'):
        site.clean()
    assert site.kernel.written == []


def test_refused_reset_fails(site: Site) -> None:
    site.kernel.refuse('reset', errno.ENOTTY)
    with pytest.raises(DriverError, match='cannot be reset'):
        site.clean()


def test_lost_function_is_not_clean(site: Site) -> None:
    site.kernel.lose(_VIRTUAL)
    with pytest.raises(DeviceGone):
        site.clean()


def test_removed_virtual_function_is_clean(site: Site) -> None:
    site.kernel.disable(_PARENT)
    assert site.clean() == ['']


def test_function_without_reset_fails(tmp_path: Path) -> None:
    kernel = FakeKernel('generic-pci', tmp_path)
    directory = (tmp_path / 'sys/bus/pci/devices' / _VIRTUAL).resolve()
    for name in ('reset', 'reset_method'):
        (directory / name).unlink()
    site = Site.allow(kernel, _PARENT, '1d55')
    with pytest.raises(DriverError, match='cannot reset'):
        site.clean()


def test_clean_erases_drive(tmp_path: Path) -> None:
    kernel = NvmeKernel('nvme-lvm', tmp_path)
    site = Site.allow(kernel, _DRIVE, '8086')
    assert site.clean() == ['nvme version 2.8 (git 2.8)', '']
    assert kernel.tools.erases() == ['nvme sanitize /dev/nvme1 --sanact=4']
