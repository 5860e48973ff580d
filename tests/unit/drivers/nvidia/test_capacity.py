# SPDX-License-Identifier: Apache-2.0
"""Tests of the capacity of a card, which does not depend on its current use."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.capacity import (
    count_capacity,
    read_driver_version,
)
from cyborg_lite.drivers.nvidia.layout import (
    Vgpu,
    VgpuLayout,
    VgpuMode,
    VgpuType,
    VgpuTypeCache,
)

_SIXTEEN = tuple(f'0000:41:00.{number}' for number in range(16))


def _type(name: str, available: int = 1, maximum: int | None = None) -> VgpuType:
    return VgpuType(name, name, available, maximum)


def _capacity(
    vgpu_type: VgpuType,
    *extra_types: VgpuType,
    existing: int = 0,
    memory: int | None = None,
    instances: tuple[int, ...] = (),
    mode: VgpuMode = VgpuMode.MDEV_OF_VIRTUAL,
) -> int:
    vgpus = tuple(Vgpu(address, vgpu_type.id) for address in _SIXTEEN[:existing])
    layout = VgpuLayout(mode, _SIXTEEN, (vgpu_type, *extra_types), vgpus)
    return count_capacity(layout, vgpu_type, memory, instances)


@pytest.mark.parametrize('available', [0, 1, 4])
def test_capacity_uses_max_instance_of_description(available: int) -> None:
    assert _capacity(_type('A100-10C', available, maximum=4)) == 4


def test_capacity_is_limited_by_virtual_functions() -> None:
    assert _capacity(_type('A100-1Q', maximum=40)) == 16
    assert _capacity(_type('T4-1Q', maximum=40), mode=VgpuMode.MDEV) == 40


@pytest.mark.parametrize(('name', 'maximum'), [('L40S-24Q', 2), ('L40S-16Q', 3)])
def test_capacity_without_description_divides_memory(name: str, maximum: int) -> None:
    vgpu_type = _type(name)
    assert _capacity(vgpu_type, memory=48 << 10, mode=VgpuMode.VENDOR_VFIO) == maximum


def test_capacity_without_memory_counts_existing_and_available() -> None:
    assert _capacity(_type('X-24Q'), existing=2, mode=VgpuMode.VENDOR_VFIO) == 3
    assert _capacity(_type('X-24Q', 0), existing=2, mode=VgpuMode.VENDOR_VFIO) == 2


@pytest.mark.parametrize(
    ('name', 'instances', 'maximum'),
    [
        ('A100-7-40C', (0,), 1),
        ('A100-3-20C', (1, 2), 2),
        ('A100-2-10C', (3, 5), 2),
        ('A100-1-5C', (7, 8, 13), 3),
        ('A100-1-5C', (1, 7, 8), 2),
        ('A100-1-10C', (1, 3), 1),
    ],
)
def test_capacity_counts_gpu_instances_of_size(
    name: str, instances: tuple[int, ...], maximum: int
) -> None:
    assert _capacity(_type(name), memory=40 << 10, instances=instances) == maximum


def _count_halves(vgpu_type: VgpuType, second: VgpuType) -> int:
    return _capacity(vgpu_type, second, memory=40 << 10, instances=(1, 2))


def test_capacity_ignores_impossible_rival_profile() -> None:
    """Three and four slices of seven are both half of the card."""
    three, four = _type('A100-3-20C'), _type('A100-4-20C')
    assert _count_halves(three, four) == 1
    assert _count_halves(three, _type('A100-4-20C', 0)) == 2
    assert _count_halves(_type('A100-3-20C', 0), four) == 0


def test_capacity_series_share_gpu_instances() -> None:
    assert _count_halves(_type('A100-3-20C'), _type('A100-3-20Q')) == 2


@pytest.mark.parametrize(
    ('product', 'largest', 'memory'),
    [('20b2', 0, 80 << 10), ('ffff', 48 << 10, 48 << 10), ('20b7', 48 << 10, 48 << 10)],
)
def test_memory_of_card_is_that_of_larger_source(
    product: str, largest: int, memory: int
) -> None:
    card, cache = PciFunction(Host('compute-1'), '0000:af:00.0'), VgpuTypeCache()
    vars(card)['device'] = product
    cache.restore_memory(card.address, product, largest)
    assert cache.find_memory(card) == memory
    vars(card)['device'] = 'fffe'
    assert cache.find_memory(card) is None


@pytest.mark.parametrize(
    ('text', 'version'),
    [
        (
            'NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\n'
            'GCC version:  gcc version 11.4.0',
            '535.129.03',
        ),
        (
            'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.03  '
            'Release Build',
            '570.124.03',
        ),
        (
            'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  '
            'Release Build  (dvs-builder@U16-A24-9-2)  Thu Oct 10 12:15:00 UTC 2024\n'
            'GCC version:  gcc version 13.3.0',
            '565.57.01',
        ),
        ('NVRM version: NVIDIA UNIX x86_64 Kernel Module  590.44', '590.44'),
        ('GCC version:  gcc version 11.4.0', None),
        (None, None),
    ],
)
def test_driver_version_is_read(
    tmp_path: Path, text: str | None, version: str | None
) -> None:
    if text is not None:
        path = tmp_path / 'proc/driver/nvidia/version'
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert read_driver_version(Host('compute-1', tmp_path)) == version
