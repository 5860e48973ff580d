# SPDX-License-Identifier: Apache-2.0
"""Use of the disks of a PCI function by the host.

A disk is in use if the disk or one of its partitions is mounted, is swap space, is part
of LVM, RAID, dm-crypt or multipath (kernel: ``holders``), or belongs to a file system
of several disks, such as btrfs or ZFS.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers.host.sysfs import Host, PciFunction, pci_address

_BLOCK: Final = 'sys/block'
_SUBSYSTEMS: Final = 'sys/class/nvme-subsystem'
_NAMESPACE: Final = re.compile(r'nvme\d+n\d+')
_MAX_DEPTH: Final = 16  # directories between a disk and its PCI function
# The mounts of the agent and of init, in case the agent has its own mount namespace.
_MOUNTS: Final = ('proc/mounts', 'proc/1/mounts')
_MOUNT_INFO: Final = ('proc/self/mountinfo', 'proc/1/mountinfo')
_SWAPS: Final = 'proc/swaps'
_BTRFS: Final = 'sys/fs/btrfs'
# Signatures of users that the kernel does not list as holders.
_EXCLUSIVE: Final = frozenset({'zfs_member', 'ceph_bluestore'})
_SIGNATURE: Final = re.compile(r'^E:ID_FS_TYPE=(\w+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Disk:
    """A block device of a function, with its partitions."""

    host: Host
    path: str  # directory of the disk

    @property
    def directories(self) -> Iterator[str]:
        """Directories of the disk and of its partitions."""
        yield self.path
        for name in self.host.names(self.path):
            if self.host.has(f'{self.path}/{name}/partition'):
                yield f'{self.path}/{name}'


def list_namespaces(function: PciFunction) -> tuple[Disk, ...]:
    """Return the namespaces of the NVMe controllers of a function.

    With native multipath a namespace belongs to the NVMe subsystem, and the controller
    has only a hidden path to it (kernel: drivers/nvme/host/multipath.c).
    """
    host = function.host
    directories = []
    for controller in function.names('nvme'):
        directories.append(function.path(f'nvme/{controller}'))
        for subsystem in host.names(_SUBSYSTEMS):
            if host.has(f'{_SUBSYSTEMS}/{subsystem}/{controller}'):
                directories.append(f'{_SUBSYSTEMS}/{subsystem}')
    return tuple(
        Disk(host, f'{directory}/{name}')
        for directory in directories
        for name in host.names(directory)
        if _NAMESPACE.fullmatch(name)
    )


def list_disks(function: PciFunction) -> tuple[Disk, ...]:
    """Return the disks of any kind behind a function."""
    host = function.host
    attached = (
        Disk(host, f'{_BLOCK}/{name}')
        for name in host.names(_BLOCK)
        if function.address in _list_parents(host, f'{_BLOCK}/{name}')
    )
    return (*list_namespaces(function), *attached)


def find_disk_user(disks: tuple[Disk, ...]) -> str | None:
    """Return what of the host uses one of the disks, or None if nothing does."""
    for disk in disks:
        for directory in disk.directories:
            user = _find_user(disk.host, directory)
            if user is not None:
                return user
    return None


def _list_parents(host: Host, path: str) -> Iterator[str]:
    """Yield the addresses of the PCI functions above a directory of sysfs."""
    for depth in range(_MAX_DEPTH):
        name = host.target(path + '/..' * depth)
        if name is None:
            return
        address = pci_address(name)
        if address is not None:
            yield address


def _find_user(host: Host, directory: str) -> str | None:
    name = host.target(directory) or directory.rpartition('/')[2]
    holders = host.names(f'{directory}/holders')
    if holders:
        labels = (host.text(f'{_BLOCK}/{item}/dm/name') or item for item in holders)
        return f'{", ".join(labels)} on {name}'
    number = host.text(f'{directory}/dev')
    place = _find_mount(host, f'/dev/{name}', number)
    if place is not None:
        return f'{place} is mounted from {name}'
    for line in (host.text(_SWAPS) or '').splitlines():
        if line.split()[:1] == [f'/dev/{name}']:
            return f'swap space on {name}'
    for file_system in host.names(_BTRFS):
        # The list of mounts has only one of the devices of a file system.
        if name in host.names(f'{_BTRFS}/{file_system}/devices'):
            return f'btrfs {file_system} on {name}'
    signature = _read_signature(host, number)
    return f'{signature} on {name}' if signature in _EXCLUSIVE else None


def _find_mount(host: Host, device: str, number: str | None) -> str | None:
    """Return where a device is mounted, by its name or its number, or None."""
    for path in _MOUNTS:
        for line in (host.text(path) or '').splitlines():
            fields = line.split()
            if len(fields) > 1 and fields[0] == device:
                return fields[1]
    for path in _MOUNT_INFO:
        for line in (host.text(path) or '').splitlines():
            fields = line.split()
            if len(fields) > 4 and fields[2] == number:
                return fields[4]
    return None


def _read_signature(host: Host, number: str | None) -> str | None:
    """Return the type of the content, as udev has read it."""
    text = host.text(f'run/udev/data/b{number}') if number else None
    match = _SIGNATURE.search(text or '')
    return match[1] if match else None
