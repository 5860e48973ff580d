# SPDX-License-Identifier: Apache-2.0
"""Tests of partitions of Fabric Manager."""

import errno
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.nvidia.fabric_partitions import FabricGroups
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.testing.preparation_checks import build_handle
from tests.hosts.kernel import FakeKernel

CARDS = '0000:1b:00.0', '0000:43:00.0'
OTHER = '0000:3b:00.0'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('function-groups', tmp_path)


def build(kernel: FakeKernel, number: int = 1, cards: str = '') -> FabricGroups:
    host = Host('compute-1', kernel.root, kernel)
    writer = Writer(kernel.root, kernel, 3.0)
    texts = [f'{number} = {cards or " + ".join(CARDS)}']
    return FabricGroups(host, writer, [f'{OTHER} + {OTHER[:-1]}1'], texts)


@pytest.fixture
def members(kernel: FakeKernel) -> list[AllocatedHandle]:
    host = Host('compute-1', kernel.root, kernel)
    options = {'fabric_partitions': [f'1 = {" + ".join(CARDS)}']}
    driver = NvidiaGpu(host, {'offer_without_reset': False, **options})
    devices = (item.device for item in driver.discover() if item.address == CARDS[0])
    (device,) = filter(None, devices)
    return [build_handle(device, device.root, item) for item in device.root.handles]


def test_activate_and_deactivate_are_idempotent(
    kernel: FakeKernel, members: list[AllocatedHandle]
) -> None:
    partitions = build(kernel)
    host = Host('compute-1', kernel.root, kernel)
    first, second = (PciFunction(host, address) for address in (CARDS[0], OTHER))
    assert partitions.is_partition(first)
    assert not partitions.is_partition(second)
    for _ in range(2):
        partitions.activate(members)
        assert kernel.fabric.list_active() == [1]
    for _ in range(2):
        partitions.deactivate(members)
        assert kernel.fabric.list_active() == []
    changes = [text for tool, text in kernel.written if text != '-l']
    assert changes == ['-a 1', '-d 1']


def test_refused_partition_is_busy(
    kernel: FakeKernel, members: list[AllocatedHandle]
) -> None:
    build(kernel).activate(members)
    with pytest.raises(DeviceBusy, match='FM_ST_IN_USE'):
        build(kernel, 2).activate(members)


def test_unknown_partition_is_reported(
    kernel: FakeKernel, members: list[AllocatedHandle]
) -> None:
    with pytest.raises(DriverError, match='does not show partition 9'):
        build(kernel, 9).activate(members)


def test_tool_without_answer_is_reported(
    kernel: FakeKernel, members: list[AllocatedHandle]
) -> None:
    kernel.refuse('fmpm', errno.EACCES)
    with pytest.raises(DriverError, match='Permission denied'):
        build(kernel).activate(members)


def test_invalid_address_is_refused(kernel: FakeKernel) -> None:
    with pytest.raises(ConfigurationError):
        build(kernel, cards='card')
