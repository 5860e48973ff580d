# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the vGPU layout of a card in all modes, and its types."""

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.layout import (
    CREATABLE_TYPES,
    MDEV_TYPES,
    VgpuMode,
    VgpuType,
    list_creatable_types,
    list_mdev_types,
    read_layout,
)
from tests.hosts import sysfs_tree
from tests.hosts.sysfs_device import Plug


@pytest.mark.parametrize(
    ('name', 'address', 'counts'),
    [
        # Neither mdev types nor the SR-IOV capability divide a card.
        ('t4-mdev', '0000:3b:00.0', (VgpuMode.MDEV, 0, 0)),
        ('t4-mdev', '0000:af:00.0', (VgpuMode.MDEV, 0, 2)),
        ('a100-sriov-mig', '0000:41:00.0', (VgpuMode.MDEV_OF_VIRTUAL, 16, 1)),
        ('a100-sriov-mig', '0000:c1:00.0', (VgpuMode.MDEV_OF_VIRTUAL, 16, 0)),
        ('l40s-vendor-vfio', '0000:82:00.0', (VgpuMode.VENDOR_VFIO, 32, 1)),
        ('l40s-vendor-vfio', '0000:c3:00.0', (VgpuMode.NONE, 0, 0)),
        # Virtual functions of another vendor, without any vGPU file.
        ('generic-pci', '0000:d9:00.0', (VgpuMode.UNKNOWN, 2, 0)),
    ],
)
def test_read_layout_mode_follows_files(
    name: str, address: str, counts: tuple[VgpuMode, int, int], host: Host
) -> None:
    sysfs_tree.build(name, host.root)
    layout = read_layout(PciFunction(host, address))
    assert (layout.mode, len(layout.enabled), len(layout.existing)) == counts
    assert layout.is_undivided is (counts[1:] == (0, 0))


def test_read_layout_merges_creatable_types(host: Host) -> None:
    """A function with an mdev lists no type as available."""
    sysfs_tree.build('a100-sriov-mig', host.root)
    layout = read_layout(PciFunction(host, '0000:41:00.0'))
    assert [item.name for item in layout.types if item.is_creatable] == [
        'GRID A100-10C'
    ]


@pytest.mark.parametrize(
    ('file', 'text'),
    [
        ('available_instances', str(2**64 - 1)),
        ('description', f'max_instance={2**64 - 1}'),
    ],
)
def test_read_layout_impossible_number_is_unknown(
    host: Host, file: str, text: str
) -> None:
    """The conductor refuses a report with so many units."""
    sysfs_tree.build('t4-mdev', host.root)
    card = PciFunction(host, '0000:3b:00.0')
    (host.root / card.path(f'{MDEV_TYPES}/nvidia-231/{file}')).write_text(text)
    (kind,) = (item for item in read_layout(card).types if item.id == 'nvidia-231')
    assert max(kind.available, kind.max_per_card or 0) < 100


# --- types of vGPUs ---


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
