# SPDX-License-Identifier: Apache-2.0
"""Tests of the offer of cards whose kernel files do not show their whole capacity."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Deployable, Device
from cyborg_lite.testing.preparation_checks import build_handle
from tests.hosts import sysfs_tree
from tests.hosts.scans import find_device

_CARD = '0000:b1:00.0'
_FUNCTIONS = tuple(f'0000:b1:00.{number}' for number in (4, 5, 6, 7))
_HEADING = 'ID    : vGPU Name'
_UNLISTED = '2bff'  # a device id that is not in the table of models


class Bench:
    """A host with one card of vGPUs without mdevs, and its driver."""

    def __init__(self, host: Host, product: str, rule: str, *lines: str) -> None:
        self._host = host
        # Any: YAML values have no common type.
        fields: dict[str, Any] = copy.deepcopy(
            dict(sysfs_tree.fields_of('l4-blackwell-vgpu'))
        )
        fields['devices'] = [e for e in fields['devices'] if e['pci'] == _CARD]
        card = fields['devices'][0]
        card['ids'][1] = card['sriov']['vf_device'] = product
        sysfs_tree.build_from(fields, host.root, most_virtual=8)
        self.options = {'offer_without_reset': False, 'vgpu_types': [f'*={rule}']}
        self._virtual = sorted(
            item.address for item in host.pci_functions() if item.is_virtual
        )
        self.driver = NvidiaGpu(host, self.options)
        self.write_creatable(*lines)

    def write_creatable(self, *lines: str) -> None:
        """Set the types that the card can still create."""
        for address in self._virtual:
            self._write(address, 'creatable_vgpu_types', '\n'.join((_HEADING, *lines)))

    def set_vgpu(self, address: str, number: str, instance: str = '-1') -> None:
        self._write(address, 'current_vgpu_type', number)
        self._write(address, 'gpu_instance_id', instance)

    def create_instances(self, instances: Sequence[int]) -> None:
        for number in instances:
            name = f'proc/driver/nvidia/capabilities/gpu1/mig/gi{number}'
            (self._host.root / name).mkdir(parents=True)

    def device(self) -> Device:
        return find_device(self.driver, _CARD)

    def offer(self) -> tuple[int, int]:
        """Return the total and the free number of vGPUs."""
        parts = [part for part in self.device().root.walk() if part.resource_class]
        total = sum(part.total for part in parts)
        return total, total - sum(part.unavailable for part in parts)

    def _write(self, address: str, name: str, text: str) -> None:
        path = self._host.root / f'sys/bus/pci/devices/{address}/nvidia/{name}'
        path.write_text(f'{text}\n')


def _allocate(device: Device, part: Deployable, number: int) -> AllocatedHandle:
    return build_handle(device, part, part.handles[number])


def test_capacity_unlisted_card_survives_restart(host: Host) -> None:
    bench = Bench(host, _UNLISTED, 'X-6Q', '1 : NVIDIA X-6Q', '3 : NVIDIA X-24Q')
    device = bench.device()
    bench.write_creatable('1 : NVIDIA X-6Q')
    bench.set_vgpu(_FUNCTIONS[0], '1')
    bench.driver = NvidiaGpu(host, bench.options)
    bench.driver.restore_handles([_allocate(device, device.root, 0)])
    bench.driver.restore_device(device)
    assert bench.offer() == (4, 4)


def test_capacity_replaced_card_ignores_earlier_model(host: Host) -> None:
    bench = Bench(host, _UNLISTED, 'X-6Q', '1 : NVIDIA X-6Q', '3 : NVIDIA X-24Q')
    device = replace(bench.device(), std_board_info={'product_id': '2bfe'})
    bench.write_creatable('1 : NVIDIA X-6Q')
    bench.set_vgpu(_FUNCTIONS[0], '1')
    bench.driver = NvidiaGpu(host, bench.options)
    bench.driver.restore_device(device)
    assert bench.offer() == (2, 1)


def test_capacity_unknown_type_is_part_of_total(host: Host) -> None:
    """Two vGPUs of a type that no function lists exist; a third one fits."""
    bench = Bench(host, _UNLISTED, 'X-6Q', '1 : NVIDIA X-6Q')
    bench.set_vgpu(_FUNCTIONS[0], '9')
    bench.set_vgpu(_FUNCTIONS[1], '9')
    assert bench.offer() == (3, 1)


@pytest.mark.parametrize(
    ('instances', 'foreign', 'offer'),
    [
        ((1, 11, 12, 13), '1', (3, 3)),  # another size: a half of the card
        ((1, 11, 12, 13), '13', (3, 2)),  # the same size
        ((1, 11, 12, 13), '-1', (3, 2)),  # unknown: may be of the same size
    ],
)
def test_capacity_unknown_type_takes_its_instance(
    instances: Sequence[int], foreign: str, offer: tuple[int, int], host: Host
) -> None:
    bench = Bench(host, '2335', 'H200X-1-18C', '1561 : NVIDIA H200X-1-18C')
    bench.create_instances(instances)
    bench.set_vgpu(_FUNCTIONS[0], '1570', foreign)
    assert bench.offer() == offer


def test_handles_survive_removal_of_foreign_vgpu(host: Host) -> None:
    bench = Bench(host, '2335', 'H200X-1-18C', '1561 : NVIDIA H200X-1-18C')
    bench.create_instances((1, 11, 12, 13))
    bench.set_vgpu(_FUNCTIONS[0], '1570', '1')
    device = bench.device()
    (part,) = device.root.children
    assert [handle.key[:12] for handle in part.handles] == list(_FUNCTIONS[1:])
    handle = _allocate(device, part, 2)
    bench.driver.restore_handles([handle])
    bench.set_vgpu(_FUNCTIONS[3], '1561', '11')
    bench.set_vgpu(_FUNCTIONS[0], '0')
    (part,) = bench.device().root.children
    assert handle.key in {handle.key for handle in part.handles}
    assert (part.total, part.unavailable) == (3, 0)
