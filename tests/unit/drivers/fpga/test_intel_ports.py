# SPDX-License-Identifier: Apache-2.0
"""Tests of ports of Intel FPGA cards that are released to virtual functions."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.fpga.intel import IntelFpga
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DeviceBusy
from tests.hosts.kernel import FakeKernel
from tests.hosts.scans import find_device

_CARD = '0000:5e:00.0'
_HOST, _FUNCTIONS = 'ports-on-host', 'ports-on-vfs'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('fpga-intel', tmp_path)


def _driver(kernel: FakeKernel) -> IntelFpga:
    options = {option.dest: option.default for option in IntelFpga.OPTIONS}
    return IntelFpga(Host('compute-1', kernel.root, kernel), options)


def _current(driver: IntelFpga) -> list[str]:
    modes = driver.modes(find_device(driver, _CARD))
    return [mode.name for mode in modes if mode.is_current]


def test_assign_removes_virtual_function_first(kernel: FakeKernel) -> None:
    driver = _driver(kernel)
    device = driver.set_mode(find_device(driver, _CARD), _FUNCTIONS)
    kernel.written.clear()
    driver.set_mode(device, _HOST)
    steps = [text for _, text in kernel.written]
    assert steps == ['0', 'assign /dev/dfl-fme.0 0']
    assert _current(driver) == [_HOST]


def test_function_of_guest_keeps_its_port(kernel: FakeKernel) -> None:
    driver = _driver(kernel)
    device = driver.set_mode(find_device(driver, _CARD), _FUNCTIONS)
    group = kernel.root / 'sys/bus/pci/devices/0000:5e:00.1/iommu_group'
    kernel.open(f'/dev/vfio/{group.resolve().name}')
    with pytest.raises(DeviceBusy, match='a guest uses'):
        driver.set_mode(device, _HOST)
    assert _current(driver) == [_FUNCTIONS]
