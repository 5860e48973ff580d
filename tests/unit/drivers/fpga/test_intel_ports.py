# SPDX-License-Identifier: Apache-2.0
"""Tests of ports of Intel FPGA cards that are released to virtual functions."""

import errno
from pathlib import Path

import pytest

from cyborg_lite.drivers.fpga.intel import IntelFpga
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.inventory.host_report import Device
from devstack.launcher import sample_hosts
from tests.hosts.kernel import FakeKernel

_CARD = '0000:5e:00.0'
_HOST, _FUNCTIONS = 'ports-on-host', 'ports-on-vfs'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('fpga-intel', tmp_path)


def _driver(kernel: FakeKernel) -> IntelFpga:
    options = {option.dest: option.default for option in IntelFpga.OPTIONS}
    return IntelFpga(Host('compute-1', kernel.root, kernel), options)


def _device(driver: IntelFpga) -> Device:
    (device,) = (
        result.device
        for result in driver.discover()
        if result.device and result.address == _CARD
    )
    return device


def _current(driver: IntelFpga) -> list[str]:
    modes = driver.modes(_device(driver))
    return [mode.name for mode in modes if mode.is_current]


def test_assign_removes_virtual_function_first(kernel: FakeKernel) -> None:
    driver = _driver(kernel)
    device = driver.set_mode(_device(driver), _FUNCTIONS)
    kernel.written.clear()
    driver.set_mode(device, _HOST)
    steps = [text for _, text in kernel.written]
    assert steps == ['0', 'assign /dev/dfl-fme.0 0']
    assert _current(driver) == [_HOST]


def test_interrupted_release_has_no_mode(kernel: FakeKernel) -> None:
    driver = _driver(kernel)
    device = _device(driver)
    kernel.refuse('sriov_numvfs', errno.EIO)
    with pytest.raises(DriverError, match='sriov_numvfs cannot be set to 1'):
        driver.set_mode(device, _FUNCTIONS)
    assert _current(driver) == []
    driver.set_mode(device, _HOST)
    assert _current(driver) == [_HOST]


def test_function_of_guest_keeps_its_port(kernel: FakeKernel) -> None:
    driver = _driver(kernel)
    device = driver.set_mode(_device(driver), _FUNCTIONS)
    group = kernel.root / 'sys/bus/pci/devices/0000:5e:00.1/iommu_group'
    kernel.open(f'/dev/vfio/{group.resolve().name}')
    with pytest.raises(DeviceBusy, match='a guest uses'):
        driver.set_mode(device, _HOST)
    assert _current(driver) == [_FUNCTIONS]


def test_reboot_returns_ports_to_host(kernel: FakeKernel) -> None:
    driver = _driver(kernel)
    driver.set_mode(_device(driver), _FUNCTIONS)
    kernel.reboot()
    assert _current(driver) == [_HOST]


def test_release_works_on_default_sample_host(tmp_path: Path) -> None:
    name = sample_hosts.find_fixture(sample_hosts.DEFAULT)
    driver = _driver(FakeKernel(name, tmp_path, most_virtual=4))
    device = driver.set_mode(_device(driver), _FUNCTIONS)
    assert [handle.key for handle in device.root.handles] == ['0000:5e:00.1']
