# SPDX-License-Identifier: Apache-2.0
"""Tests of partitions of Fabric Manager."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.nvidia.fabric_partitions import FabricGroups
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.hosts.kernel import FakeKernel
from tests.hosts.scans import build_handles, find_device

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
    return build_handles(find_device(driver, CARDS[0]))


def test_activate_and_deactivate_change_partition_once(
    kernel: FakeKernel, members: list[AllocatedHandle]
) -> None:
    partitions = build(kernel)
    for change in (partitions.activate, partitions.deactivate):
        change(members)
        change(members)
    changes = [text for _, text in kernel.written if text != '-l']
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


def test_invalid_address_is_refused(kernel: FakeKernel) -> None:
    with pytest.raises(ConfigurationError):
        build(kernel, cards='card')
