# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for NVMe drives."""

import shutil
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvme import NvmeDrive
from cyborg_lite.model.inventory import DiscoveryResult
from tests.hosts import sysfs_tree
from tests.hosts.sysfs_device import Plug

_BOOT, _FREE = '0000:c1:00.0', '0000:c2:00.0'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    sysfs_tree.build('nvme-lvm', tmp_path)
    return Host('compute-1', tmp_path)


def _results(driver: NvmeDrive) -> dict[str, DiscoveryResult]:
    return {result.address: result for result in driver.discover()}


def _driver(host: Host) -> NvmeDrive:
    return NvmeDrive(host, {'offer_without_reset': False})


def _directory(host: Host, address: str) -> Path:
    return (host.root / 'sys/bus/pci/devices' / address).resolve()


def test_discover_drive_in_use_names_mount(host: Host) -> None:
    result = _results(_driver(host))[_BOOT]
    assert result.reason == 'in use by the host: /boot/efi is mounted from nvme0n1p1'
    assert result.device is not None
    assert result.device.root.handles == ()


def test_discover_drive_without_namespaces_is_withheld(host: Host) -> None:
    """The content of such a drive is unknown."""
    shutil.rmtree(host.root / 'sys/class/nvme-subsystem')
    result = _results(_driver(host))[_BOOT]
    assert result.reason == 'in use by the host: its namespaces cannot be found'


def test_discover_drive_in_guest_keeps_identity(host: Host) -> None:
    driver = _driver(host)
    before = _results(driver)[_FREE].device
    assert before is not None
    assert before.hardware_id == 'BTLJ0000000X4P0DGN'
    typed = {item.name: item.value for item in before.root.typed_attributes}
    assert typed['firmware']
    directory = _directory(host, _FREE)
    shutil.rmtree(directory / 'nvme')
    (directory / 'driver').unlink()
    (host.root / 'sys/bus/pci/drivers/vfio-pci').mkdir()
    (directory / 'driver').symlink_to(host.root / 'sys/bus/pci/drivers/vfio-pci')
    assert _results(driver)[_FREE].device == before


def test_discover_dead_controller_is_reserved(host: Host) -> None:
    (_directory(host, _FREE) / 'nvme/nvme1/state').write_text('dead\n')
    result = _results(_driver(host))[_FREE]
    assert result.reason == 'the controller nvme1 is dead'
    assert result.device is not None
    assert result.device.root.unavailable == result.device.root.total == 1


def test_discover_unknown_vendor_has_no_vendor_trait(host: Host, plug: Plug) -> None:
    fields = {'class': '010802', 'driver': 'vfio-pci', 'iommu_group': 99}
    plug('0000:d1:00.0', ('c0a9', '5407'), **fields)
    device = _results(_driver(host))['0000:d1:00.0'].device
    assert device is not None
    assert device.root.traits == ('OWNER_CYBORG', 'CUSTOM_SSD_PRODUCT_ID_5407')
    assert (device.model, device.driver) == ('c0a9:5407', 'c0a9')
