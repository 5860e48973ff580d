# SPDX-License-Identifier: Apache-2.0
"""Tests of what a driver remembers of cards that it cannot read."""

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.card_memory import CardMemory
from cyborg_lite.model.inventory import typed_attributes
from tests.builders.reports import card
from tests.hosts.sysfs_device import Plug

_DEVICE = card(0x3B)
_ADDRESS = _DEVICE.control_address


def test_attributes_of_power_and_link_are_kept(host: Host) -> None:
    memory, function = CardMemory(), PciFunction(host, _ADDRESS)
    speed, node = typed_attributes.LINK_SPEED.of(8000), typed_attributes.NUMA_NODE.of(1)
    assert memory.complete_attributes(function, [node, speed]) == [speed, node]
    assert memory.complete_attributes(function, []) == [speed]
    faster = typed_attributes.LINK_SPEED.of(16000)
    assert memory.complete_attributes(function, [faster]) == [faster]


def test_serial_belongs_to_one_model(host: Host, plug: Plug) -> None:
    plug(_ADDRESS)
    memory, function = CardMemory(), PciFunction(host, _ADDRESS)
    memory.keep_serial(_ADDRESS, '10de:ffff', 'GPU-1')
    assert memory.find_serial(function) is None
    memory.keep_serial(_ADDRESS, function.ids, 'GPU-2')
    assert memory.find_serial(function) == 'GPU-2'


def test_absent_card_is_removed(host: Host) -> None:
    memory = CardMemory()
    memory.restore(_DEVICE, 'driver')
    memory.remove_absent({_ADDRESS})
    result = memory.find_result(_ADDRESS)
    assert result is not None
    assert (result.driver, result.device) == ('driver', _DEVICE)
    memory.remove_absent(set())
    assert memory.find_result(_ADDRESS) is None


def test_result_without_device_removes_last(host: Host) -> None:
    memory = CardMemory()
    memory.restore(_DEVICE, 'driver')
    memory.keep_result(_ADDRESS, None)
    assert memory.find_result(_ADDRESS) is None
