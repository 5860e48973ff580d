# SPDX-License-Identifier: Apache-2.0
"""Tests of GPUs that are shared as SR-IOV virtual functions."""

from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.amd_gpu import AmdGpu
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.intel_gpu import IntelGpu
from cyborg_lite.exceptions import DeviceBusy
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.model.inventory import Device, Health
from cyborg_lite.testing.preparation_checks import build_handle
from tests.hosts.kernel import FakeKernel

_FLEX = '0000:d9:00.0'
_INSTINCT = '0000:c8:00.0'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('generic-pci', tmp_path)


# Any: driver options have various types.
def _intel(kernel: FakeKernel, **options: Any) -> IntelGpu:
    host = Host('compute-1', kernel.root, kernel)
    return IntelGpu(host, {'offer_without_reset': False, **options})


def _device(driver: IntelGpu | AmdGpu) -> Device:
    (device,) = (result.device for result in driver.discover() if result.device)
    return device


def _handles(device: Device) -> list[AllocatedHandle]:
    return [build_handle(device, device.root, unit) for unit in device.root.handles]


def test_discover_existing_vfs_are_offered(kernel: FakeKernel) -> None:
    root = _device(_intel(kernel)).root
    assert [unit.key for unit in root.handles] == ['0000:d9:00.1', '0000:d9:00.2']
    assert not any(unit.needs_host for unit in root.handles)


def test_discover_vf_used_by_host_is_withheld(kernel: FakeKernel) -> None:
    function = kernel.root / 'sys/bus/pci/devices/0000:d9:00.2'
    (kernel.root / 'sys/bus/pci/drivers/uio_pci_generic').mkdir()
    (function / 'driver').unlink()
    (function / 'driver').symlink_to('../../../../bus/pci/drivers/uio_pci_generic')
    driver = _intel(kernel)
    assert [unit.key for unit in _device(driver).root.handles] == ['0000:d9:00.1']
    reasons = {result.address: result.reason for result in driver.discover()}
    assert reasons['0000:d9:00.2'].endswith('bound to uio_pci_generic')


def test_discover_card_without_vfs_is_whole(kernel: FakeKernel) -> None:
    kernel.disable(_FLEX)
    assert _device(_intel(kernel)).root.resource_class == 'PGPU'


def test_vfs_created_for_first_removed_after_last(
    kernel: FakeKernel,
) -> None:
    kernel.disable(_FLEX)
    driver = _intel(kernel, virtual_functions=['8086:56c0 = 4'])
    before = _device(driver)
    first, second, *_ = _handles(before)
    driver.prepare(first)
    driver.prepare(second)
    assert _device(driver).root == before.root
    assert [text for _, text in kernel.written] == ['0', '4']
    driver.release(second)
    assert [text for _, text in kernel.written] == ['0', '4']
    driver.release(first)
    assert [text for _, text in kernel.written] == ['0', '4', '0']


def test_release_vf_in_use_keeps_vfs(kernel: FakeKernel) -> None:
    """The kernel would remove the virtual function of the guest, too."""
    kernel.disable(_FLEX)
    driver = _intel(kernel, virtual_functions=['8086:56c0=4'])
    first, *_ = _handles(_device(driver))
    driver.prepare(first)
    kernel.open('/dev/vfio/143')
    driver.release(first)
    assert kernel.written[-1][1] == '4'


def test_prepare_with_other_vf_count_raises_busy(kernel: FakeKernel) -> None:
    driver = _intel(kernel, virtual_functions=['8086:56c0=4'])
    device = _device(driver)
    assert device.root.total == 2
    handle = AllocatedHandle(
        **{
            **{n: getattr(_handles(device)[0], n) for n in AllocatedHandle.__slots__},
            'info': {'domain': '0000', 'bus': 'd9', 'device': '00', 'function': '4'},
        }
    )
    with pytest.raises(DeviceBusy, match='2 virtual functions of another program'):
        driver.prepare(handle)
    assert kernel.written == []


def test_discover_too_many_vfs_is_withheld(kernel: FakeKernel) -> None:
    kernel.disable(_FLEX)
    device = _device(_intel(kernel, virtual_functions=['8086:56c0=32']))
    assert device.root.resource_class is None
    assert device.health_reason == 'it cannot have 32 virtual functions'


def test_read_usage_amd_includes_driver_values(kernel: FakeKernel) -> None:
    host = Host('compute-1', kernel.root, kernel)
    driver = AmdGpu(host, {'offer_without_reset': False})
    usage = driver.read_usage(_device(driver))
    assert (usage.health, usage.busy_percent) == (Health.OK, 3)
    assert (usage.memory_used, usage.memory_total) == (10960896, 68702699520)
    assert (usage.temperature, usage.power) == (38.0, 41.0)


def test_discover_amd_serial_unreadable_keeps_identity(kernel: FakeKernel) -> None:
    host = Host('compute-1', kernel.root, kernel)
    driver = AmdGpu(host, {'offer_without_reset': False})
    before = _device(driver)
    assert before.hardware_id == 'e0a9b1f4c3d20001'
    (host.root / f'sys/bus/pci/devices/{_INSTINCT}/unique_id').unlink()
    assert _device(driver) == before
