# SPDX-License-Identifier: Apache-2.0
"""Tests of the capacity of a card, which does not depend on its current use."""

import pytest

from cyborg_lite.drivers.nvidia.capacity import count_capacity
from cyborg_lite.drivers.nvidia.layout import (
    Vgpu,
    VgpuLayout,
    VgpuMode,
    VgpuType,
    share_instances,
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


def _count_quarters(device: str, *existing: Vgpu) -> int:
    """Return the number of vGPUs of 6 GiB in two instances of 24 GiB."""
    names = ('DC-1-6Q', 'DC-1-24Q')
    six, full = share_instances(device, map(_type, names))
    layout = VgpuLayout(VgpuMode.VENDOR_VFIO, _SIXTEEN, (six, full), existing)
    return count_capacity(layout, six, 96 << 10, (3, 4))


def test_capacity_vgpus_share_gpu_instances() -> None:
    own = Vgpu(_SIXTEEN[0], 'DC-1-6Q', instance=3)
    assert _count_quarters('2bb5') == _count_quarters('2bb5', own) == 8
