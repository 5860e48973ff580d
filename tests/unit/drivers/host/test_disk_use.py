# SPDX-License-Identifier: Apache-2.0
"""Tests of the use of disks by the host."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.drivers.host import disk_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from tests.hosts import mount_tables, sysfs_tree
from tests.hosts.sysfs_device import Plug

_BOOT, _FREE = '0000:c1:00.0', '0000:c2:00.0'
_DISK: Final = 'sys/block/nvme1n1'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    sysfs_tree.build('nvme-lvm', tmp_path)
    return Host('compute-1', tmp_path)


def _write(host: Host, path: str, text: str) -> None:
    file = host.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{text}\n')


def _find_user(host: Host, address: str = _FREE) -> str | None:
    return disk_use.find_disk_user(disk_use.list_disks(PciFunction(host, address)))


def test_find_disk_user_multipath_finds_namespace(host: Host) -> None:
    assert _find_user(host, _BOOT) == '/boot/efi is mounted from nvme0n1p1'
    _write(host, 'proc/mounts', '/dev/mapper/vg0-root / xfs rw 0 0')
    assert _find_user(host, _BOOT) == 'vg0-root, vg0-swap on nvme0n1p2'


def test_find_disk_user_without_use_is_none(host: Host) -> None:
    assert _find_user(host) is None


def test_find_disk_user_holder_of_disk_is_named(host: Host) -> None:
    (host.root / _DISK / 'holders/md0').mkdir()
    assert _find_user(host) == 'md0 on nvme1n1'


@pytest.mark.parametrize(
    ('path', 'text', 'user'),
    [
        (
            'proc/mounts',
            '/dev/nvme1n1 /srv ext4 rw 0 0',
            '/srv is mounted from nvme1n1',
        ),
        (
            'proc/1/mounts',
            '/dev/nvme1n1 /srv ext4 rw 0 0',
            '/srv is mounted from nvme1n1',
        ),
        (
            'proc/self/mountinfo',
            '30 1 259:7 / / rw shared:1 - ext4 /dev/root rw',
            '/ is mounted from nvme1n1',
        ),
        (
            'proc/swaps',
            'Filename Type\n/dev/nvme1n1 partition 1 0 -2',
            'swap space on nvme1n1',
        ),
        ('run/udev/data/b259:7', 'E:ID_FS_TYPE=zfs_member', 'zfs_member on nvme1n1'),
    ],
)
def test_find_disk_user_names_use(host: Host, path: str, text: str, user: str) -> None:
    _write(host, f'{_DISK}/dev', '259:7')
    assert _find_user(host) is None
    _write(host, path, text)
    assert _find_user(host) == user


def test_find_disk_user_second_btrfs_device_is_used(host: Host) -> None:
    """Find each device of a btrfs file system; mounts list the first one only."""
    (host.root / 'sys/fs/btrfs/0a1b/devices/nvme1n1').mkdir(parents=True)
    assert _find_user(host) == 'btrfs 0a1b on nvme1n1'


def test_find_disk_user_file_system_alone_is_free(host: Host) -> None:
    _write(host, f'{_DISK}/dev', '259:7')
    _write(host, 'run/udev/data/b259:7', 'E:ID_FS_TYPE=ext4')
    assert _find_user(host) is None


def test_list_disks_includes_disks_of_controllers(host: Host, plug: Plug) -> None:
    """The disks of a RAID or SATA controller lie below its directory."""
    directory = plug('0000:61:00.0', **{'class': '010700', 'driver': 'mpt3sas'})
    disk = directory / 'host0/target0:0:0/0:0:0:0/block/sda'
    (disk / 'holders').mkdir(parents=True)
    (host.root / 'sys/block/sda').symlink_to(disk)
    _write(host, 'proc/1/mounts', '/dev/sda /var ext4 rw 0 0')
    assert _find_user(host, '0000:61:00.0') == '/var is mounted from sda'
    assert _find_user(host, _FREE) is None


_REASON: Final = (
    'it may be the system disk: no mount table shows / on a disk of this host'
)
_SYSTEM, _SPARE = '0000:01:00.0', '0000:02:00.0'
_PARTITION: Final = 'sys/block/nvme0n1/nvme0n1p2'


@pytest.fixture
def plain(tmp_path: Path) -> Host:
    """Return a host with ext4 on a plain partition, and no mount table."""
    sysfs_tree.build('nvme-ascend', tmp_path / 'plain')
    host = Host('compute-1', tmp_path / 'plain')
    mount_tables.replace_tables(host.root, 'missing')
    _write(host, f'{_PARTITION}/dev', '259:2')
    (host.root / 'sys/block/loop0').mkdir()
    return host


def _add_holder(host: Host, name: str, number: str) -> None:
    """Add a block device above the system partition."""
    _write(host, f'sys/block/{name}/dev', number)
    _write(host, f'sys/block/{name}/slaves/nvme0n1p2/dev', '259:2')
    (host.root / _PARTITION / 'holders' / name).symlink_to(host.root / 'sys/block')


@pytest.mark.parametrize('fault', mount_tables.FAULTS)
def test_find_disk_user_unknown_root_is_user(plain: Host, fault: str) -> None:
    mount_tables.replace_tables(plain.root, fault)
    for address in (_SYSTEM, '0000:03:00.0'):
        function = PciFunction(plain, address)
        assert disk_use.find_storage_user(function) == _REASON
    assert disk_use.find_storage_user(PciFunction(plain, '0000:0e:00.0')) is None


@pytest.mark.parametrize(
    ('path', 'line'),
    [
        ('proc/mounts', '/dev/nvme0n1p2 / ext4 rw 0 0'),
        ('proc/1/mounts', '/dev/nvme0n1p2 / ext4 rw 0 0'),
        ('proc/self/mountinfo', '30 1 259:2 / / rw shared:1 - ext4 /dev/root rw'),
        ('proc/1/mountinfo', '30 1 259:2 / / rw - ext4 /dev/disk/by-label/r rw'),
        ('proc/1/mountinfo', '30 1 0:28 /@ / rw - btrfs /dev/nvme0n1p2 rw,subvol=/@'),
    ],
)
def test_find_disk_user_known_root_frees_spare(
    plain: Host, path: str, line: str
) -> None:
    _write(plain, path, line)
    assert _find_user(plain, _SPARE) is None
    assert _find_user(plain, _SYSTEM) == '/ is mounted from nvme0n1p2'


@pytest.mark.parametrize(
    ('name', 'number', 'line'),
    [
        ('dm-0', '253:0', '30 1 253:0 / / rw - xfs /dev/mapper/vg0-root rw'),
        ('dm-0', '253:0', '30 1 253:0 / / rw - ext4 /dev/mapper/luks-1 rw'),
        ('md0', '9:0', '30 1 9:0 / / rw - ext4 /dev/md0 rw'),
    ],
)
def test_find_disk_user_root_above_partition_is_known(
    plain: Host, name: str, number: str, line: str
) -> None:
    """The root file system is on LVM, dm-crypt or a software RAID."""
    _add_holder(plain, name, number)
    _write(plain, 'proc/1/mountinfo', line)
    assert _find_user(plain, _SPARE) is None
    assert _find_user(plain, _SYSTEM) == f'{name} on nvme0n1p2'


@pytest.mark.parametrize('below', [(), ('loop0',), ('nvme0n1p2', 'loop0')])
def test_find_disk_user_root_of_container_is_unknown(
    plain: Host, below: tuple[str, ...]
) -> None:
    """The root file system of a container may be a volume in a loop device."""
    _add_holder(plain, 'dm-0', '253:0')
    slaves = plain.root / 'sys/block/dm-0/slaves'
    shutil.rmtree(slaves)
    for name in below:
        (slaves / name).mkdir(parents=True)
    _write(plain, 'proc/1/mountinfo', '30 1 253:0 / / rw - xfs /dev/dm-0 rw')
    assert _find_user(plain, _SPARE) == _REASON


@pytest.mark.parametrize('path', [f'{_DISK}/holders', 'proc/swaps', 'sys/fs/btrfs'])
@pytest.mark.parametrize('is_missing', [False, True])
def test_find_disk_user_unreadable_file_is_user(
    host: Host, path: str, is_missing: bool
) -> None:
    file = host.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(file, ignore_errors=True)
    file.unlink(missing_ok=True)
    if not is_missing:
        file.symlink_to(file.name)  # an endless loop
    # Not every kernel has swap space and btrfs.
    is_free = is_missing and not path.endswith('holders')
    user = _find_user(host)
    assert user is None if is_free else 'an unknown user of nvme1n1: /' in str(user)


def test_find_disk_user_btrfs_root_without_number_is_known(plain: Host) -> None:
    _write(plain, 'proc/1/mountinfo', '30 1 0:28 /@ / rw - btrfs /dev/root rw')
    assert _find_user(plain, _SPARE) == _REASON
    (plain.root / 'sys/fs/btrfs/0a1b/devices/nvme0n1p2').mkdir(parents=True)
    assert _find_user(plain, _SPARE) is None
    assert _find_user(plain, _SYSTEM) == 'btrfs 0a1b on nvme0n1p2'


def test_find_disk_user_layer_of_overlay_is_root(plain: Host) -> None:
    overlay = 'rw,lowerdir=/media/root-ro,upperdir=/media/root-rw/overlay'
    lines = (
        f'30 1 0:30 / / rw - overlay overlayroot {overlay}',
        '31 30 259:2 / /media/root-ro ro - ext4 /dev/root ro',
    )
    _write(plain, 'proc/1/mountinfo', lines[0])
    assert _find_user(plain, _SPARE) == _REASON
    _write(plain, 'proc/1/mountinfo', '\n'.join(lines))
    assert _find_user(plain, _SPARE) is None
    assert _find_user(plain, _SYSTEM) == '/media/root-ro is mounted from nvme0n1p2'


def test_find_disk_user_network_boot_needs_mount_table(plain: Host) -> None:
    host = replace(plain, has_system_disk=False)
    assert _find_user(host, _SPARE) == _REASON
    mount_tables.replace_tables(host.root, 'of a network boot')
    assert _find_user(host, _SPARE) is None
    assert _find_user(host, _SYSTEM) is None


def test_find_disk_user_bind_mount_is_no_layer(plain: Host) -> None:
    """The layers of a container are on the disk whose file it has as /etc/hosts."""
    lines = (
        '30 1 0:30 / / rw - overlay overlay rw,lowerdir=/docker/l/A:/docker/l/B',
        '31 30 259:9 /docker/hosts /etc/hosts rw - ext4 /dev/nvme1n1 rw',
    )
    _write(plain, 'proc/1/mountinfo', '\n'.join(lines))
    assert _find_user(plain, _SYSTEM) == _REASON
    assert _find_user(plain, _SPARE) == '/etc/hosts is mounted from nvme1n1'
