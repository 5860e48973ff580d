# SPDX-License-Identifier: Apache-2.0
"""Tests of names, sizes and lists of vGPU types."""

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.layout import (
    CREATABLE_TYPES,
    VgpuType,
    list_creatable_types,
    list_mdev_types,
    type_label,
)
from tests.hosts.sysfs_device import Plug


@pytest.mark.parametrize(
    ('name', 'label', 'memory', 'uses_gpu_instance'),
    [
        ('GRID T4-2B', 'T4_2B', 2048, False),
        ('GRID T4-2B4', 'T4_2B4', 2048, False),
        ('GRID M60-0Q', 'M60_0Q', 512, False),
        ('NVIDIA L40S-24Q', 'L40S_24Q', 24576, False),
        ('NVIDIA RTX Pro 6000 Blackwell DC-3Q', 'RTX_PRO_6000_BLACKWELL_DC_3Q', 3072,
         False),
        ('GRID A100-1-5C', 'A100_1_5C', 5120, True),
        ('GRID A100-1-5CME', 'A100_1_5CME', 5120, True),
        ('NVIDIA H200X-1-18C', 'H200X_1_18C', 18432, True),
        ('A100_1_5C', 'A100_1_5C', 5120, True),  # the label in the key of a handle
        ('nvidia-231', 'NVIDIA_231', None, False),  # the kernel has no name
    ],
)  # fmt: skip
def test_vgpu_type_parses_name(
    name: str, label: str, memory: int | None, uses_gpu_instance: bool
) -> None:
    vgpu_type = VgpuType('1', name, available=0)
    assert (vgpu_type.label, vgpu_type.memory) == (label, memory)
    assert vgpu_type.uses_gpu_instance is uses_gpu_instance
    assert type_label(label) == label


@pytest.mark.parametrize(
    'text', ['nvidia-231', '231', 'GRID T4-2Q', 'T4-2Q', 'T4_2Q', 't4-2q']
)
def test_vgpu_type_matches_id_number_and_name(text: str) -> None:
    assert VgpuType('nvidia-231', 'GRID T4-2Q', 0).matches(text)
    assert not VgpuType('nvidia-232', 'GRID T4-4Q', 0).matches(text)


@pytest.mark.parametrize(
    'text',
    [
        'ID    : vGPU Name\n1155  : NVIDIA L40S-24Q',
        '1155:NVIDIA L40S-24Q',
        ' 1155 :  NVIDIA L40S-24Q  \n\ngarbage\nNVIDIA L40S-24Q : 1155',
    ],
)
def test_list_creatable_types_accepts_any_spacing(
    text: str, host: Host, plug: Plug
) -> None:
    plug('0000:82:00.4', files={CREATABLE_TYPES: text})
    assert list_creatable_types(PciFunction(host, '0000:82:00.4')) == (
        VgpuType('1155', 'NVIDIA L40S-24Q', 1),
    )


def test_list_creatable_types_heading_only_is_empty(host: Host, plug: Plug) -> None:
    plug('0000:82:00.4', files={CREATABLE_TYPES: 'ID    : vGPU Name'})
    assert list_creatable_types(PciFunction(host, '0000:82:00.4')) == ()


def test_list_mdev_types_without_name_uses_id(host: Host, plug: Plug) -> None:
    directory = 'mdev_supported_types/i915-GVTg_V5_4'
    plug('0000:00:02.0', files={f'{directory}/available_instances': '3'})
    assert list_mdev_types(PciFunction(host, '0000:00:02.0')) == (
        VgpuType('i915-GVTg_V5_4', 'i915-GVTg_V5_4', 3),
    )
