# SPDX-License-Identifier: Apache-2.0
"""Tests of the NVIDIA driver: results for all functions of the fixture hosts."""

import re
import shutil
from dataclasses import asdict

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.hosts import sysfs_tree
from tests.hosts.scans import find_device
from tests.hosts.sysfs_device import Plug

_OPTIONS = {'offer_without_reset': False}


def _results(host: Host) -> dict[str, DiscoveryResult]:
    results = list(NvidiaGpu(host, _OPTIONS).discover())
    assert len({result.address for result in results}) == len(results)
    return {result.address: result for result in results}


def _is_nvidia(host: Host, address: str) -> bool:
    return host.text(f'sys/bus/pci/devices/{address}/vendor') == '0x10de'


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_discover_returns_all_vendor_functions(name: str, host: Host) -> None:
    built = sysfs_tree.build(name, host.root)
    expected = {item for item in built.functions if _is_nvidia(host, item)}
    assert set(_results(host)) == expected


def test_hardware_id_of_uninitialized_card_is_address(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    directory = host.root / 'proc/driver/nvidia/gpus/0000:3b:00.0'
    file = directory / 'information'
    text = file.read_text()
    unknown = 'GPU-????????-????-????-????-????????????'
    file.write_text(re.sub(r'GPU-[0-9a-f-]+', unknown, text))
    driver = NvidiaGpu(host, _OPTIONS)

    assert find_device(driver, '0000:3b:00.0').hardware_id == '0000:3b:00.0'
    file.write_text(text)
    device = find_device(driver, '0000:3b:00.0')
    assert device.hardware_id == 'GPU-6ee9bd5d-26e1-4f9e-9f0e-1b6d0c0a3b00'


def test_hardware_id_unreadable_is_cached(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    driver = NvidiaGpu(host, _OPTIONS)
    before = [asdict(result) for result in driver.discover()]
    # The vendor driver shows only the cards that are bound to it.
    shutil.rmtree(host.root / 'proc/driver/nvidia')
    assert [asdict(result) for result in driver.discover()] == before


def test_hardware_id_replaced_card_is_not_cached(host: Host, plug: Plug) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    driver = NvidiaGpu(host, _OPTIONS)
    assert list(driver.discover())
    listed = host.root / 'sys/bus/pci/devices/0000:3b:00.0'
    listed.unlink()
    assert all(item.address != '0000:3b:00.0' for item in driver.discover())
    shutil.rmtree(host.root / 'proc/driver/nvidia')
    plug('0000:3b:00.0')
    assert find_device(driver, '0000:3b:00.0').hardware_id == '0000:3b:00.0'


def test_discover_removed_card_does_not_hide_others(host: Host) -> None:
    sysfs_tree.build('l40s-vendor-vfio', host.root)
    scan = iter(NvidiaGpu(host, _OPTIONS).discover())
    first = next(scan)
    # The addresses are listed. Remove the second card and keep the links to it.
    shutil.rmtree(host.root / 'sys/devices/pci0000:c0')
    results = list(scan)
    assert first.address == '0000:82:00.0'
    assert len(results) == 32
    assert '0000:c3:00.0' not in {result.address for result in results}


def test_vgpus_have_version_of_host_driver(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    options = {**_OPTIONS, 'vgpu_types': ['0000:3b:00.0=GRID T4-2Q']}
    device = find_device(NvidiaGpu(host, options), '0000:3b:00.0')
    typed = {item.name: item.value for item in device.root.typed_attributes}
    assert typed['vgpu_type'] == 'T4_2Q'
    assert typed['driver_version'] == '535.129.03'
