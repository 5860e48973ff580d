# SPDX-License-Identifier: Apache-2.0
"""Tests of names, sizes and lists of vGPU types."""

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.layout import (
    CREATABLE_TYPES,
    VgpuType,
    list_creatable_types,
    list_mdev_types,
)
from tests.hosts.sysfs_device import Plug


@pytest.mark.parametrize(
    'text', ['nvidia-231', '231', 'GRID T4-2Q', 'T4-2Q', 'T4_2Q', 't4-2q']
)
def test_vgpu_type_matches_id_number_and_name(text: str) -> None:
    assert VgpuType('nvidia-231', 'GRID T4-2Q', 0).matches(text)
    assert not VgpuType('nvidia-232', 'GRID T4-4Q', 0).matches(text)


def test_list_creatable_types_heading_only_is_empty(host: Host, plug: Plug) -> None:
    plug('0000:82:00.4', files={CREATABLE_TYPES: 'ID    : vGPU Name'})
    assert list_creatable_types(PciFunction(host, '0000:82:00.4')) == ()


def test_list_mdev_types_without_name_uses_id(host: Host, plug: Plug) -> None:
    directory = 'mdev_supported_types/i915-GVTg_V5_4'
    plug('0000:00:02.0', files={f'{directory}/available_instances': '3'})
    assert list_mdev_types(PciFunction(host, '0000:00:02.0')) == (
        VgpuType('i915-GVTg_V5_4', 'i915-GVTg_V5_4', 3),
    )
