# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for AMD GPUs: serial number and telemetry."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.gpus.amd import AmdGpu
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.model.inventory.host_report import Device, Health
from tests.hosts.kernel import FakeKernel
from tests.hosts.scans import find_device

INSTINCT = '0000:c8:00.0'


@pytest.fixture
def driver(tmp_path: Path) -> AmdGpu:
    kernel = FakeKernel('generic-pci', tmp_path)
    host = Host('compute-1', kernel.root, kernel)
    return AmdGpu(host, {'offer_without_reset': False})


@pytest.fixture
def device(driver: AmdGpu) -> Device:
    return find_device(driver, INSTINCT)


def test_discover_identifies_card_by_unique_id(driver: AmdGpu, device: Device) -> None:
    assert (device.control_address, device.vendor) == (INSTINCT, '1002')
    assert 'e0a9b1f4c3d20001' in device.hardware_id


def test_discover_serial_unreadable_keeps_identity(
    driver: AmdGpu, device: Device, tmp_path: Path
) -> None:
    (tmp_path / f'sys/bus/pci/devices/{INSTINCT}/unique_id').unlink()
    assert find_device(driver, INSTINCT) == device


def test_read_usage_returns_load_and_memory(driver: AmdGpu, device: Device) -> None:
    usage = driver.read_usage(device)
    assert usage.busy_percent == 3
    assert (usage.memory_used, usage.memory_total) == (10960896, 68702699520)
    assert (usage.temperature, usage.power, usage.health) == (38.0, 41.0, Health.OK)


def test_read_usage_missing_file_is_unknown(
    driver: AmdGpu, device: Device, tmp_path: Path
) -> None:
    function = PciFunction(Host('compute-1', tmp_path), INSTINCT)
    (tmp_path / function.path('gpu_busy_percent')).unlink()
    assert driver.read_usage(device).busy_percent is None


def read_power(driver: AmdGpu) -> str | None:
    attributes = find_device(driver, INSTINCT).root.typed_attributes
    typed = {item.name: item.value for item in attributes}
    return typed.get('max_power_w')


def test_discover_reads_highest_power_and_keeps_it(
    driver: AmdGpu, tmp_path: Path
) -> None:
    function = PciFunction(Host('compute-1', tmp_path), INSTINCT)
    path = tmp_path / function.path('hwmon/hwmon7/power1_cap_max')
    assert read_power(driver) is None
    path.write_text('300000000\n')
    assert read_power(driver) == '300'
    # The files of hwmon go when a guest gets the card.
    path.unlink()
    assert read_power(driver) == '300'
