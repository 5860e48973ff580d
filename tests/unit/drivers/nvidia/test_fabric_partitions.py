# SPDX-License-Identifier: Apache-2.0
"""Tests of partitions of Fabric Manager."""

import errno
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.nvidia.fabric_partitions import FabricGroups
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from tests.hosts.kernel import FakeKernel

CARDS = '0000:1b:00.0', '0000:43:00.0'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('function-groups', tmp_path)


def build(kernel: FakeKernel, number: int = 1) -> FabricGroups:
    writer = Writer(kernel.root, kernel, 3.0)
    return FabricGroups(writer, [f'{number} = {" + ".join(CARDS)}'])


def test_activate_and_deactivate_are_idempotent(kernel: FakeKernel) -> None:
    partitions = build(kernel)
    assert partitions.has_group(CARDS)
    assert not partitions.has_group(CARDS[:1])
    for _ in range(2):
        partitions.activate(CARDS)
        assert kernel.fabric.list_active() == [1]
    for _ in range(2):
        partitions.deactivate(CARDS)
        assert kernel.fabric.list_active() == []
    changes = [text for tool, text in kernel.written if text != '-l']
    assert changes == ['-a 1', '-d 1']


def test_refused_partition_is_busy(kernel: FakeKernel) -> None:
    build(kernel).activate(CARDS)
    with pytest.raises(DeviceBusy, match='FM_ST_IN_USE'):
        build(kernel, 2).activate(CARDS)


def test_unknown_partition_is_reported(kernel: FakeKernel) -> None:
    with pytest.raises(DriverError, match='does not show partition 9'):
        build(kernel, 9).activate(CARDS)


def test_tool_without_answer_is_reported(kernel: FakeKernel) -> None:
    kernel.refuse('fmpm', errno.EACCES)
    with pytest.raises(DriverError, match='Permission denied'):
        build(kernel).activate(CARDS)


def test_invalid_address_is_refused(kernel: FakeKernel) -> None:
    with pytest.raises(ConfigurationError):
        FabricGroups(Writer(kernel.root, kernel, 3.0), ['1 = card'])
