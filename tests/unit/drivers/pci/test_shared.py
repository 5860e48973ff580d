# SPDX-License-Identifier: Apache-2.0
"""Tests of cards that are shared as SR-IOV virtual functions, with Intel GPUs."""

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.pci.shared import VIRTUAL_FUNCTIONS_OPTION
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.inventory.host_report import Health
from tests.hosts.kernel import FakeKernel
from tests.hosts.pci_links import bind_driver
from tests.hosts.scans import build_handles, find_device, scan

_FLEX = '0000:d9:00.0'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('generic-pci', tmp_path)


# Any: driver options have various types.
def _intel(kernel: FakeKernel, **options: Any) -> IntelGpu:
    host = Host('compute-1', kernel.root, kernel)
    return IntelGpu(host, {'offer_without_reset': False, **options})


@pytest.fixture
def on_demand(kernel: FakeKernel) -> IntelGpu:
    """Return the driver of a card whose virtual functions do not exist yet."""
    kernel.disable(_FLEX)
    return _intel(kernel, virtual_functions=['8086:56c0=4'])


def test_discover_vfs_have_configured_class(kernel: FakeKernel) -> None:
    assert find_device(_intel(kernel), _FLEX).root.resource_class == 'VGPU'
    own_class = 'CUSTOM_CYBORG_VGPU'
    root = find_device(_intel(kernel, vgpu_resource_class=own_class), _FLEX).root
    assert (root.resource_class, root.attributes['rc']) == (own_class, own_class)


def test_discover_vf_used_by_host_is_withheld(kernel: FakeKernel) -> None:
    bind_driver(Host('compute-1', kernel.root), '0000:d9:00.2', 'uio_pci_generic')
    driver = _intel(kernel)
    (handle,) = find_device(driver, _FLEX).root.handles
    assert handle.key == '0000:d9:00.1'
    assert scan(driver)['0000:d9:00.2'].reason.endswith('bound to uio_pci_generic')


def test_discover_card_without_vfs_is_whole(kernel: FakeKernel) -> None:
    kernel.disable(_FLEX)
    assert find_device(_intel(kernel), _FLEX).root.resource_class == 'PGPU'


def test_vfs_at_other_addresses_are_offered_after_first_attempt(
    kernel: FakeKernel,
) -> None:
    """Offset and stride may change with the number of virtual functions."""
    kernel.disable(_FLEX)
    offset = kernel.root / 'sys/bus/pci/devices' / _FLEX / 'sriov_offset'
    offset.write_text('9\n')
    driver = _intel(kernel, virtual_functions=['8086:56c0=4'])
    handle, *_ = build_handles(find_device(driver, _FLEX))
    with pytest.raises(DriverError, match='has 4 virtual functions, but none at'):
        driver.prepare(handle)
    handle, *_ = build_handles(find_device(driver, _FLEX))
    assert handle.key == '0000:d9:00.1'
    driver.prepare(handle)
    assert driver.is_prepared(handle)
    driver.release(handle)
    first, *_ = build_handles(find_device(driver, _FLEX))
    assert first.key == handle.key


def test_release_vf_in_use_keeps_vfs(on_demand: IntelGpu, kernel: FakeKernel) -> None:
    """The kernel would remove the virtual function of the guest, too."""
    first, *_ = build_handles(find_device(on_demand, _FLEX))
    on_demand.prepare(first)
    kernel.open('/dev/vfio/143')
    on_demand.release(first)
    assert kernel.written[-1][1] == '4'


def test_prepare_with_other_vf_count_raises_busy(kernel: FakeKernel) -> None:
    driver = _intel(kernel, virtual_functions=['8086:56c0=4'])
    device = find_device(driver, _FLEX)
    assert device.root.total == 2
    info = {'domain': '0000', 'bus': 'd9', 'device': '00', 'function': '4'}
    handle = replace(build_handles(device)[0], info=info)
    with pytest.raises(DeviceBusy, match='2 virtual functions of another program'):
        driver.prepare(handle)
    assert kernel.written == []


def test_discover_too_many_vfs_is_withheld(kernel: FakeKernel) -> None:
    kernel.disable(_FLEX)
    device = find_device(_intel(kernel, virtual_functions=['8086:56c0=32']), _FLEX)
    assert device.root.resource_class is None
    assert device.health_reason == 'it cannot have 32 virtual functions'


def test_prepare_failed_does_not_count_handle(
    on_demand: IntelGpu, kernel: FakeKernel
) -> None:
    """Otherwise the virtual functions would stay after the last release."""
    first, second, *_ = build_handles(find_device(on_demand, _FLEX))
    kernel.refuse('sriov_numvfs', errno.EIO)
    with pytest.raises(DriverError, match='sriov_numvfs'):
        on_demand.prepare(first)
    on_demand.prepare(second)
    on_demand.release(second)
    assert not on_demand.is_prepared(second)


def test_release_handle_of_earlier_process_keeps_vfs(
    on_demand: IntelGpu, kernel: FakeKernel
) -> None:
    first, second, *_ = build_handles(find_device(on_demand, _FLEX))
    on_demand.prepare(first)
    on_demand.prepare(second)
    successor = _intel(kernel, virtual_functions=['8086:56c0=4'])
    successor.restore_handles([first, second])
    successor.release(first)
    assert successor.is_prepared(second)
    successor.release(second)
    assert not successor.is_prepared(second)


def test_discover_lost_card_reserves_handles(kernel: FakeKernel) -> None:
    """Guests have the handles, so their inventory must not disappear."""
    before = find_device(_intel(kernel), _FLEX).root
    kernel.lose(_FLEX)
    device = find_device(_intel(kernel), _FLEX)
    assert device.health is Health.FAILED
    assert device.root.handles == before.handles
    assert (device.root.total, device.root.unavailable) == (2, 2)


@pytest.mark.parametrize('text', ['8086:56c0', '=4', '8086:56c0=x', '8086:56c0=4x'])
def test_option_malformed_pair_is_refused(text: str) -> None:
    """A pair that cannot be read would withhold the card at each scan."""
    with pytest.raises(ValueError, match='regex'):
        VIRTUAL_FUNCTIONS_OPTION.type([text])
    assert VIRTUAL_FUNCTIONS_OPTION.type(['* = 4']) == ['* = 4']


def test_vfs_at_start_are_created_and_kept(kernel: FakeKernel) -> None:
    kernel.disable(_FLEX)
    rules = ['8086:56c0 = 4']
    driver = _intel(kernel, virtual_functions=rules, virtual_functions_at_start=True)
    device = find_device(driver, _FLEX)
    assert driver.prepare_device(device)
    assert not driver.prepare_device(device)
    handle, *_ = build_handles(find_device(driver, _FLEX))
    driver.prepare(handle)
    driver.release(handle)
    numbers = [text for path, text in kernel.written if path.endswith('numvfs')]
    assert numbers == ['4']


def test_vfs_at_start_lost_card_is_left_alone(kernel: FakeKernel) -> None:
    kernel.disable(_FLEX)
    rules = ['8086:56c0 = 4']
    driver = _intel(kernel, virtual_functions=rules, virtual_functions_at_start=True)
    device = find_device(driver, _FLEX)
    kernel.lose(_FLEX)
    assert not driver.prepare_device(device)
    assert kernel.written == []
