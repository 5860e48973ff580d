# SPDX-License-Identifier: Apache-2.0
"""Capacity is what a card can hold, and not what is left of it now."""

import pytest

from cyborg_lite.drivers.nvidia_capacity import capacity, card_memory, gpu_instances
from cyborg_lite.drivers.nvidia_carving import Carving, Vgpu, Way
from cyborg_lite.drivers.nvidia_types import VgpuType
from cyborg_lite.drivers.sysfs import Host
from tests.fakes import sysfs_tree

_SIXTEEN = tuple(f'0000:41:00.{number}' for number in range(16))


def _type(name: str, available: int = 1, most: int | None = None) -> VgpuType:
    return VgpuType(name, name, available, most)


def _capacity(
    each: VgpuType,
    *others: VgpuType,
    made: int = 0,
    memory: int | None = None,
    instances: tuple[int, ...] = (),
    way: Way = Way.MDEV_OF_VIRTUAL,
) -> int:
    existing = tuple(Vgpu(place, each.id) for place in _SIXTEEN[:made])
    found = Carving(way, _SIXTEEN, (each, *others), existing)
    return capacity(found, each, memory, instances)


@pytest.mark.parametrize('available', [0, 1, 4])
def test_the_description_counts_and_not_what_is_left(available: int) -> None:
    assert _capacity(_type('A100-10C', available, most=4)) == 4


def test_no_more_than_there_are_functions() -> None:
    assert _capacity(_type('A100-1Q', most=40)) == 16
    assert _capacity(_type('T4-1Q', most=40), way=Way.MDEV) == 40


@pytest.mark.parametrize(('name', 'most'), [('L40S-24Q', 2), ('L40S-16Q', 3)])
def test_without_a_description_memory_is_divided(name: str, most: int) -> None:
    each = _type(name)
    assert _capacity(each, memory=48 << 10, way=Way.VENDOR_VFIO) == most


def test_without_either_it_is_what_there_is_and_one_more() -> None:
    assert _capacity(_type('X-24Q'), made=2, way=Way.VENDOR_VFIO) == 3
    assert _capacity(_type('X-24Q', 0), made=2, way=Way.VENDOR_VFIO) == 2


@pytest.mark.parametrize(
    ('name', 'instances', 'most'),
    [
        ('A100-7-40C', (0,), 1),
        ('A100-3-20C', (1, 2), 2),
        ('A100-2-10C', (3, 5), 2),
        ('A100-1-5C', (7, 8, 13), 3),
        ('A100-1-5C', (1, 7, 8), 2),
        ('A100-1-10C', (1, 3), 1),
    ],
)
def test_an_instance_carries_one_of_its_size(
    name: str, instances: tuple[int, ...], most: int
) -> None:
    assert _capacity(_type(name), memory=40 << 10, instances=instances) == most


def _halves(each: VgpuType, other: VgpuType) -> int:
    return _capacity(each, other, memory=40 << 10, instances=(1, 2))


def test_an_instance_whose_type_cannot_be_made_is_another_types() -> None:
    """Three and four slices of seven are both a half of the card."""
    three, four = _type('A100-3-20C'), _type('A100-4-20C')
    assert _halves(three, four) == 1
    assert _halves(three, _type('A100-4-20C', 0)) == 2
    assert _halves(_type('A100-3-20C', 0), four) == 0


def test_series_of_one_size_share_their_instances() -> None:
    assert _halves(_type('A100-3-20C'), _type('A100-3-20Q')) == 2


def test_memory_comes_from_the_table_or_the_largest_type() -> None:
    types = (_type('X-24Q'), _type('X-48Q'))
    empty = Carving(Way.VENDOR_VFIO, _SIXTEEN, types)
    assert card_memory(empty, 80) == 80 << 10
    assert card_memory(empty, None) == 48 << 10
    used = Carving(Way.VENDOR_VFIO, _SIXTEEN, types, (Vgpu(_SIXTEEN[0], 'X-24Q'),))
    assert card_memory(used, None) is None


def test_instances_are_those_of_the_card(host: Host) -> None:
    sysfs_tree.build('a100-sriov-mig', host.root)
    assert gpu_instances(host, '0000:c1:00.0') == (1, 7, 8)
    assert gpu_instances(host, '0000:41:00.0') == ()
