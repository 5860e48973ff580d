# SPDX-License-Identifier: Apache-2.0
"""Use of the disks of a PCI function by the host.

A disk is in use if the disk or one of its partitions is mounted, is swap space, is part
of LVM, RAID, dm-crypt or multipath (kernel: ``holders``), or belongs to a file system
of several disks, such as btrfs or ZFS. If the system disk is unknown, any disk may be
the system disk.
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
# Class codes of mass storage, SD host and Fibre Channel controllers.
_STORAGE: Final = ('01', '0805', '0c04')
# The mounts of the agent and of init, in case the agent has its own mount namespace.
_MOUNTS: Final = ('proc/mounts', 'proc/1/mounts')
_MOUNT_INFO: Final = ('proc/self/mountinfo', 'proc/1/mountinfo')
_SWAPS: Final = 'proc/swaps'
_BTRFS: Final = 'sys/fs/btrfs'
# Block devices without a disk: a container may have its root file system on one.
_WITHOUT_DISK: Final = ('loop', 'ram', 'zram')
_LAYERED: Final = ('dm-', 'md')  # block devices above others
_LAYERS: Final = re.compile(r'(?:^|,)lowerdir=([^,]+)')  # of an overlay
# Signatures of users that the kernel does not list as holders.
_EXCLUSIVE: Final = frozenset({'zfs_member', 'ceph_bluestore'})
_SIGNATURE: Final = re.compile(r'^E:ID_FS_TYPE=(\w+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Disk:
    """A block device of a function, with its partitions."""

    host: Host
    path: str  # directory in sysfs

    @property
    def directories(self) -> Iterator[str]:
        """Directories of the disk and of its partitions."""
        yield self.path
        for name in self.host.names(self.path):
            if self.host.has(f'{self.path}/{name}/partition'):
                yield f'{self.path}/{name}'


@dataclass(frozen=True, slots=True)
class _Mount:
    """A line of a mount table. A field that the line does not have is empty."""

    source: str  # device file, or any text
    place: str
    kind: str  # type of the file system
    options: str
    number: str = ''  # of the block device; a file system without one has major 0


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
    # A known user is a better reason than a file that cannot be read.
    for find_user in (_find_user, _find_unreadable):
        for disk in disks:
            for directory in disk.directories:
                user = find_user(disk.host, directory)
                if user is not None:
                    return user
    return find_root_obstacle(disks[0].host) if disks else None


def find_storage_user(function: PciFunction) -> str | None:
    """Return what of the host uses the disks of a function, or None if nothing does.

    A storage controller without disks may be that of the system disk.
    """
    user = find_disk_user(list_disks(function))
    if user is None and function.pci_class.startswith(_STORAGE):
        return find_root_obstacle(function.host)
    return user


def find_root_obstacle(host: Host) -> str | None:
    """Return why any disk may be the system disk, or None if that disk is known.

    It is known if a mount table shows ``/`` on a block device of the host. The table of
    a container shows another ``/``.
    """
    mounts = list(_read_mounts(host))
    places = {'/'}
    for mount in mounts:
        if mount.place == '/' and (layers := _LAYERS.search(mount.options)):
            places.update(layers[1].split(':'))
    roots = [mount for mount in mounts if mount.place in places]
    if roots and not host.has_system_disk:
        return None
    identities = {text for mount in roots for text in (mount.source, mount.number)}
    if any(mount.kind == 'btrfs' for mount in roots):
        # A subvolume has a number of its own, and its source may be /dev/root.
        identities.update(f'/dev/{name}' for _, name in _list_btrfs(host))
    if any(
        text in identities
        for disk in host.names(_BLOCK)
        if _is_on_disks(host, disk)
        for text in _list_identities(host, disk)
    ):
        return None
    return 'it may be the system disk: no mount table shows / on a disk of this host'


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
    for file_system, device in _list_btrfs(host):
        # The list of mounts has only one of the devices of a file system.
        if name == device:
            return f'btrfs {file_system} on {name}'
    text = host.text(f'run/udev/data/b{number}') if number else None
    signature = _SIGNATURE.search(text or '')  # the type of the content
    if signature is None or signature[1] not in _EXCLUSIVE:
        return None
    return f'{signature[1]} on {name}'


def _find_unreadable(host: Host, directory: str) -> str | None:
    """Return that a file that shows users of a disk cannot be read, or None."""
    name = host.target(directory) or directory.rpartition('/')[2]
    path = f'{directory}/holders'
    # The kernel creates this directory with each disk and partition.
    unreadable = [] if host.has(path) else [path]
    unreadable += filter(host.is_unreadable, (_SWAPS, _BTRFS))
    if not unreadable:
        return None
    return f'an unknown user of {name}: /{unreadable[0]} cannot be read'


def _find_mount(host: Host, device: str, number: str | None) -> str | None:
    """Return where a device is mounted, by its name or its number, or None."""
    for mount in _read_mounts(host):
        if mount.source == device or (number and mount.number == number):
            return mount.place
    return None


def _read_mounts(host: Host) -> Iterator[_Mount]:
    """Yield the mounts that the agent or init sees (proc_pid_mountinfo(5))."""
    for path in _MOUNTS:
        for line in (host.text(path) or '').splitlines():
            source, place, kind, options, *_ = *line.split(), '', '', '', ''
            yield _Mount(source, place, kind, options)
    for path in _MOUNT_INFO:
        for line in (host.text(path) or '').splitlines():
            mount, _, file_system = line.partition(' - ')
            _, _, number, _, place, *_ = *mount.split(), '', '', '', '', ''
            kind, source, options, *_ = *file_system.split(), '', '', ''
            yield _Mount(source, place, kind, options, number)


def _list_btrfs(host: Host) -> Iterator[tuple[str, str]]:
    """Yield the id of each mounted btrfs file system with the name of each device."""
    for file_system in host.names(_BTRFS):
        for name in host.names(f'{_BTRFS}/{file_system}/devices'):
            yield file_system, name


def _is_on_disks(host: Host, name: str) -> bool:
    """Return True if a block device is a disk, or consists of disks only.

    The devices of LVM, dm-crypt and software RAID list their disks and partitions.
    """
    below = host.names(f'{_BLOCK}/{name}/slaves')
    if name.startswith(_WITHOUT_DISK) or (name.startswith(_LAYERED) and not below):
        return False
    return all(_is_on_disks(host, item) for item in below)


def _list_identities(host: Host, disk: str) -> Iterator[str]:
    """Yield the device files and the numbers of a block device and its partitions."""
    for directory in Disk(host, f'{_BLOCK}/{disk}').directories:
        yield f'/dev/{directory.rpartition("/")[2]}'
        if number := host.text(f'{directory}/dev'):
            yield number
    if label := host.text(f'{_BLOCK}/{disk}/dm/name'):
        yield f'/dev/mapper/{label}'
