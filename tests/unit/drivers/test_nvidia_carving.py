# SPDX-License-Identifier: Apache-2.0
"""The three generations of vGPU are told apart by looking."""

import pytest

from cyborg_lite.drivers.nvidia_carving import Vgpu, Way, carving, created_mdevs
from cyborg_lite.drivers.sysfs import Host, PciFunction
from tests.fakes import sysfs_tree


@pytest.mark.parametrize(
    ('name', 'address', 'counts'),
    [
        # Supported types, and SR-IOV in its capabilities, do not cut a card up.
        ('t4-mdev', '0000:3b:00.0', (Way.MDEV, 0, 0)),
        ('t4-mdev', '0000:af:00.0', (Way.MDEV, 0, 2)),
        ('a100-sriov-mig', '0000:41:00.0', (Way.MDEV_OF_VIRTUAL, 16, 1)),
        ('a100-sriov-mig', '0000:c1:00.0', (Way.MDEV_OF_VIRTUAL, 16, 0)),
        ('l40s-vendor-vfio', '0000:82:00.0', (Way.VENDOR_VFIO, 32, 1)),
        ('l40s-vendor-vfio', '0000:c3:00.0', (Way.NONE, 0, 0)),
        # Virtual functions of a card that is no NVIDIA, without any vGPU file.
        ('generic-pci', '0000:d9:00.0', (Way.UNKNOWN, 2, 0)),
    ],
)
def test_a_card_is_carved_as_its_files_say(
    name: str, address: str, counts: tuple[Way, int, int], host: Host
) -> None:
    sysfs_tree.build(name, host.root)
    found = carving(PciFunction(host, address))
    assert (found.way, len(found.enabled), len(found.existing)) == counts
    assert found.whole is (counts[1:] == (0, 0))


@pytest.mark.parametrize(
    ('name', 'address', 'file'),
    [
        ('a100-sriov-mig', '0000:41:00.5', 'mdev_supported_types'),
        ('l40s-vendor-vfio', '0000:82:00.5', 'nvidia'),
    ],
)
def test_a_function_that_another_driver_has_can_carry_nothing(
    name: str, address: str, file: str, host: Host
) -> None:
    sysfs_tree.build(name, host.root)
    where = host.root / f'sys/bus/pci/devices/{address}' / file
    where.rename(where.with_name('gone'))
    found = carving(PciFunction(host, f'{address[:-4]}00.0'))
    assert found.unusable == (address,)
    assert address in found.enabled


def test_mdevs_are_known_by_their_uuids_whoever_made_them(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    address = '0000:af:00.0'
    assert created_mdevs(PciFunction(host, address)) == (
        Vgpu(address, 'nvidia-231', '1ae6d6ce-4f2a-4a52-9d0c-0f5f2e7a1001'),
        Vgpu(address, 'nvidia-231', 'c0ffee00-0000-4000-8000-00000000beef'),
    )
    assert created_mdevs(PciFunction(host, '0000:3b:00.0')) == ()


def test_a_type_can_be_made_where_one_function_can_make_it(host: Host) -> None:
    """The function that carries an mdev lists all types as used up."""
    sysfs_tree.build('a100-sriov-mig', host.root)
    found = carving(PciFunction(host, '0000:41:00.0'))
    assert [each.name for each in found.types if each.creatable] == ['GRID A100-10C']


def test_a_function_with_a_type_is_named_by_a_sibling(host: Host) -> None:
    sysfs_tree.build('l40s-vendor-vfio', host.root)
    found = carving(PciFunction(host, '0000:82:00.0'))
    (vgpu,) = found.existing
    assert vgpu == Vgpu('0000:82:00.4', '1155')
    named = found.type_of(vgpu)
    assert named is not None
    assert named.name == 'NVIDIA L40S-24Q'
