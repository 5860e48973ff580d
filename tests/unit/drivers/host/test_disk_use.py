# SPDX-License-Identifier: Apache-2.0
"""Tests of the use of disks by the host."""

from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.drivers.host import disk_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from tests.hosts import sysfs_tree
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
    _write(host, 'proc/mounts', '/dev/sda /var ext4 rw 0 0')
    assert _find_user(host, '0000:61:00.0') == '/var is mounted from sda'
    assert _find_user(host, _FREE) is None
