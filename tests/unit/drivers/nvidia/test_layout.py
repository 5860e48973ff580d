# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the vGPU layout of a card in all modes."""

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.layout import (
    MDEV_TYPES,
    VgpuMode,
    read_layout,
)
from tests.hosts import sysfs_tree


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
