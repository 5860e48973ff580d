# SPDX-License-Identifier: Apache-2.0
"""Every NVIDIA function of the fabricated hosts gets its verdict."""

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Finding
from tests.fakes import sysfs_tree
from tests.unit.drivers.conftest import Plug

_OPTIONS = {'offer_without_reset': False}


def _verdicts(host: Host) -> dict[str, Finding]:
    found = list(NvidiaGpu(host, _OPTIONS).discover())
    assert len({each.address for each in found}) == len(found)
    return {each.address: each for each in found}


def _is_nvidia(host: Host, address: str) -> bool:
    return host.text(f'sys/bus/pci/devices/{address}/vendor') == '0x10de'


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_every_function_of_the_vendor_is_accounted_for(name: str, host: Host) -> None:
    built = sysfs_tree.build(name, host.root)
    ours = {each for each in built.functions if _is_nvidia(host, each)}
    assert set(_verdicts(host)) == ours


@pytest.mark.parametrize(
    ('name', 'address', 'reason'),
    [
        ('t4-mdev', '0000:af:00.0', '2 mediated devices exist'),
        ('a100-sriov-mig', '0000:41:00.0', '1 of 16 virtual functions in use'),
        ('a100-sriov-mig', '0000:c1:00.0', '0 of 16 virtual functions in use'),
        ('l40s-vendor-vfio', '0000:82:00.0', '1 of 32 virtual functions in use'),
    ],
)
def test_a_card_that_is_cut_up_is_not_offered_whole(
    name: str, address: str, reason: str, host: Host
) -> None:
    sysfs_tree.build(name, host.root)
    finding = _verdicts(host)[address]
    assert finding.reason == f'carved into vGPUs: {reason}'
    assert finding.device is not None
    assert finding.device.health_reason == finding.reason
    assert finding.device.root.resource_class is None


def test_a_card_is_known_by_its_uuid(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    device = _verdicts(host)['0000:3b:00.0'].device
    assert device is not None
    assert device.hardware_id == 'GPU-6ee9bd5d-26e1-4f9e-9f0e-1b6d0c0a3b00'


def test_without_the_vendors_driver_a_card_is_known_by_its_address(
    host: Host, plug: Plug
) -> None:
    plug('0000:3b:00.0', driver=None)
    device = _verdicts(host)['0000:3b:00.0'].device
    assert device is not None
    assert device.hardware_id == '0000:3b:00.0'


def test_a_card_keeps_its_uuid_while_a_guest_has_it(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    driver = NvidiaGpu(host, _OPTIONS)
    before = [asdict(found) for found in driver.discover()]
    # The vendor's driver shows only the cards that it holds itself.
    shutil.rmtree(host.root / 'proc/driver/nvidia')
    assert [asdict(found) for found in driver.discover()] == before


def test_a_card_put_in_the_place_of_another_is_another_card(
    host: Host, plug: Plug
) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    driver = NvidiaGpu(host, _OPTIONS)
    assert list(driver.discover())
    listed = host.root / 'sys/bus/pci/devices/0000:3b:00.0'
    listed.unlink()
    assert all(found.address != '0000:3b:00.0' for found in driver.discover())
    shutil.rmtree(host.root / 'proc/driver/nvidia')
    plug('0000:3b:00.0')
    (new,) = (each for each in driver.discover() if each.address == '0000:3b:00.0')
    assert new.device is not None
    assert new.device.hardware_id == '0000:3b:00.0'


def test_a_card_that_vanishes_costs_only_itself(host: Host) -> None:
    sysfs_tree.build('l40s-vendor-vfio', host.root)
    scan = iter(NvidiaGpu(host, _OPTIONS).discover())
    first = next(scan)
    # The names are listed by now; the second card goes, the links to it stay.
    shutil.rmtree(host.root / 'sys/devices/pci0000:c0')
    rest = list(scan)
    assert first.address == '0000:82:00.0'
    assert len(rest) == 32
    assert '0000:c3:00.0' not in {found.address for found in rest}


@pytest.mark.parametrize(
    'name', ['vendor', 'device', 'class', 'driver', 'iommu_group', 'config', 'reset']
)
def test_no_unreadable_file_hides_another_card(name: str, host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    broken = host.root / f'sys/bus/pci/devices/0000:3b:00.0/{name}'
    broken.unlink()
    broken.mkdir()  # every read of it fails
    assert _verdicts(host)['0000:af:00.0'].reason.startswith('carved')


def test_discovery_can_be_repeated(host: Host) -> None:
    sysfs_tree.build('a100-sriov-mig', host.root)
    driver = NvidiaGpu(host, _OPTIONS)
    assert list(driver.discover()) == list(driver.discover())


def test_a_root_without_sys_has_nothing(tmp_path: Path) -> None:
    assert _verdicts(Host('compute-1', tmp_path)) == {}
