# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for Intel QuickAssist cards."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.qat.driver import IntelQat
from cyborg_lite.model.inventory.host_report import DiscoveryResult, Health
from tests.hosts.kernel import FakeKernel

_CARD, _BROKEN = '0000:6b:00.0', '0000:70:00.0'
_SHARED = '0000:e8:00.0'


def _results(kernel: FakeKernel, *rules: str) -> dict[str, DiscoveryResult]:
    host = Host('compute-1', kernel.root, kernel)
    options = {'offer_without_reset': False, 'virtual_functions': rules}
    return {item.address: item for item in IntelQat(host, options).discover()}


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('qat-x710', tmp_path)


def test_discover_card_down_is_failed(kernel: FakeKernel) -> None:
    device = _results(kernel)[_BROKEN].device
    assert device is not None
    assert device.health is Health.FAILED
    assert device.health_reason == 'qat/state is down, fatal errors: 1'
    assert device.root.handles == ()


def test_discover_fatal_error_reserves_shared_card(kernel: FakeKernel) -> None:
    errors = kernel.root / f'sys/bus/pci/devices/{_CARD}/qat_ras/errors_fatal'
    errors.write_text('2\n')
    device = _results(kernel)[_CARD].device
    assert device is not None
    assert device.health_reason == 'fatal errors: 2'
    assert (device.root.resource_class, device.root.total) == ('CUSTOM_QAT', 16)
    assert device.root.unavailable == 16


def test_discover_without_host_driver_is_failed(kernel: FakeKernel) -> None:
    (kernel.root / f'sys/bus/pci/devices/{_CARD}/driver').unlink()
    assert _results(kernel)[_CARD].reason == 'driver 4xxx is not bound'


def test_discover_old_generation_counts_all_functions(tmp_path: Path) -> None:
    """The kernel ignores the number for these cards."""
    kernel = FakeKernel('qat-services', tmp_path)
    kernel.disable(_SHARED)
    directory = tmp_path / f'sys/bus/pci/devices/{_SHARED}'
    (directory / 'device').write_text('0x37c8\n')
    (directory / 'driver').unlink()
    (tmp_path / 'sys/bus/pci/drivers/c6xx').mkdir()
    (directory / 'driver').symlink_to('../../../bus/pci/drivers/c6xx')
    device = _results(kernel, '8086:37c8=4')[_SHARED].device
    assert device is not None
    assert device.root.total == 16
