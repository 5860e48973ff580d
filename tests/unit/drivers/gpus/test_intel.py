# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for Intel GPUs."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import Device
from tests.hosts.kernel import FakeKernel

_FLEX = '0000:d9:00.0'


@pytest.fixture
def device(tmp_path: Path) -> Device:
    kernel = FakeKernel('generic-pci', tmp_path)
    driver = IntelGpu(
        Host('compute-1', kernel.root, kernel), {'offer_without_reset': False}
    )
    (device,) = (result.device for result in driver.discover() if result.device)
    return device


def test_discover_ignores_gpus_of_other_vendors(device: Device) -> None:
    assert (device.control_address, device.vendor, device.type) == (
        _FLEX,
        '8086',
        'GPU',
    )


def test_model_is_named_by_device_id(device: Device) -> None:
    assert device.model in IntelGpu.MODELS.values()
    assert any('INTEL' in trait for trait in device.root.traits)
