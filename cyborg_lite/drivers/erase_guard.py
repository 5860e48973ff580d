# SPDX-License-Identifier: Apache-2.0
"""Check, as root, that the host does not use a drive whose data a tool destroys.

The agent has checked the drive already. The privileged process does not trust the agent
and sees more: mounts of all mount namespaces, other exclusive users, exports, and the
content. A fact that cannot be read is an obstacle.

The signatures of LVM and RAID alone are none: an instance may have used the drive for
its own. They are an obstacle if the records of the host name them.
"""

import errno
import os
import re
import stat
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_TOOLS: Final = ('nvme', 'blkdiscard')
# Commands of the tools that destroy no data; all others are checked.
_HARMLESS: Final = frozenset(
    {
        *('version', '--version', 'id-ctrl', 'id-ns', 'list-ns', 'smart-log'),
        *('sanitize-log', 'create-ns', 'attach-ns', 'ns-rescan'),
    }
)
_DEVICE: Final = re.compile(r'/dev/(nvme\d+)(n\d+)?')
_NAMESPACE: Final = re.compile(r'nvme\d+n\d+')
_EXPORTS: Final = 'sys/kernel/config/nvmet/subsystems'

_SECTOR: Final = 512
_LVM_SECTORS: Final = 4  # that may have the label (lvm2: lib/label/label.h)
_LVM_ID: Final = 32  # characters of the uuid of a physical volume
_LVM_RECORDS: Final = ('etc/lvm/backup', 'etc/lvm/archive', 'etc/lvm/devices')
# Linux: include/uapi/linux/raid/md_p.h
_RAID_MAGIC: Final = 0xA92B4EFC
_RAID_NAME: Final = slice(32, 64)  # set_name of a superblock of version 1
_RAID_STARTS: Final = (0, 4096)  # bytes; versions 1.1 and 1.2


def destroys_data(tool: str, arguments: Sequence[str]) -> bool:
    """Return True if a tool may destroy the data of a drive.

    :param tool: path of the tool; only those of the NVMe driver are known
    """
    is_known = os.path.basename(tool) in _TOOLS
    return is_known and _HARMLESS.isdisjoint(arguments[:1])


def find_obstacle(root: str, arguments: Sequence[str]) -> str | None:
    """Return why a tool must not destroy the data of a drive, or None.

    :param root: directory that contains the files of the host
    :param arguments: of a tool that destroys data
    :raises OSError: what uses the drive cannot be read
    """
    devices = [match for text in arguments if (match := _DEVICE.fullmatch(text))]
    if len(devices) != 1:
        return 'the arguments do not name one drive'
    mounts = list(_read_mounts(Path(root)))
    for namespace in _list_namespaces(Path(root), devices[0]):
        for directory in _list_block_devices(namespace):
            user = _find_user(Path(root), directory, mounts)
            if user is not None:
                return f'{directory.name} is in use: {user}'
    return None


def _list_namespaces(root: Path, device: re.Match[str]) -> list[Path]:
    """Return the directories of all namespaces of a drive.

    A command on one namespace may concern all (NVM Express: Format NVM Attributes).

    :raises OSError: there is no such drive, or it cannot be read
    """
    controller, namespace = device.groups()
    path = f'sys/block/{controller}{namespace}' if namespace else ''
    directory = (root / (path or f'sys/class/nvme/{controller}')).resolve(strict=True)
    if namespace:
        directory = directory.parent
    subsystems = root / 'sys/class/nvme-subsystem'
    above = subsystems.iterdir() if subsystems.exists() else ()
    # The namespaces of several controllers belong to their subsystem.
    rooms = [directory, *(item for item in above if (item / directory.name).exists())]
    return sorted(
        {
            (room / name).resolve()
            for room in rooms
            for name in os.listdir(room)
            if _NAMESPACE.fullmatch(name)
        }
    )


def _list_block_devices(disk: Path) -> Iterator[Path]:
    """Yield the directories of a disk and of its partitions."""
    yield disk
    for name in sorted(os.listdir(disk)):
        if (disk / name / 'partition').exists():
            yield disk / name


def _find_user(root: Path, directory: Path, mounts: Sequence[str]) -> str | None:
    holders = os.listdir(directory / 'holders')  # exists for each block device
    if holders:
        return f'{", ".join(sorted(holders))} is above it'
    number = (directory / 'dev').read_text().strip()
    device = f'/dev/{directory.name}'
    for line in mounts:
        place, _, source = line.partition(' - ')
        if place.split()[2:3] == [number] or source.split()[1:2] == [device]:
            return f'it is mounted at {place.split()[4]}'
    export = _find_export(root, device)
    return export or _find_content_owner(root, root / device[1:], number)


def _read_mounts(root: Path) -> Iterator[str]:
    """Yield the lines of the mount tables of all mount namespaces.

    :raises OSError: the table of a process cannot be read, or there is no process
    """
    processes = [name for name in os.listdir(root / 'proc') if name.isdecimal()]
    if not processes:
        raise FileNotFoundError(errno.ENOENT, 'no process is visible', '/proc')
    namespaces = set()
    for number in processes:
        directory = root / 'proc' / number
        try:
            namespace = os.readlink(directory / 'ns/mnt')
            if namespace in namespaces:
                continue
            text = (directory / 'mountinfo').read_text(errors='surrogateescape')
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended
        except OSError as error:
            if error.errno != errno.EINVAL:  # of a process that is ending
                raise
            continue
        namespaces.add(namespace)
        yield from text.splitlines()
    if not namespaces:
        raise PermissionError(errno.EACCES, 'no mount table is readable', '/proc')


def _find_export(root: Path, device: str) -> str | None:
    """Return the export of a device over NVMe-oF (nvmet), which claims no device.

    :raises OSError: the exports cannot be read
    """
    exports = root / _EXPORTS
    if not exports.exists():
        if (root / 'sys/module/nvmet').exists():
            raise FileNotFoundError(errno.ENOENT, 'not mounted', f'/{_EXPORTS}')
        return None
    for path in exports.glob('*/namespaces/*/device_path'):
        exported = path.read_text().strip()
        if os.path.realpath(exported) == device or exported == device:
            return f'nvmet exports it as {path.parts[-4]}'
    return None


def _find_content_owner(root: Path, path: Path, number: str) -> str | None:
    """Return what of the host owns the content of a device, or None.

    :raises OSError: the device cannot be read
    """
    flags = os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return 'another user has it open exclusively'
        raise
    try:
        status = os.fstat(file)
        opened = f'{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}'
        if root == Path('/') and (not stat.S_ISBLK(status.st_mode) or opened != number):
            return f'{path} is not the device {number}'
        return _find_lvm(root, file) or _find_raid(root, file)
    finally:
        os.close(file)


def _find_lvm(root: Path, file: int) -> str | None:
    """Return the physical volume of LVM that the records of the host name, or None."""
    for sector in range(_LVM_SECTORS):
        label = os.pread(file, _SECTOR, sector * _SECTOR)
        if not label.startswith(b'LABELONE') or label[24:32] != b'LVM2 001':
            continue
        (offset,) = struct.unpack_from('<I', label, 20)
        uuid = label[offset : offset + _LVM_ID].decode('ascii', 'replace')
        if not (root / 'etc/lvm').is_dir():
            return 'it has a physical volume of LVM, and there is no /etc/lvm'
        for directory in _LVM_RECORDS:
            for record in sorted((root / directory).glob('*')):
                # Records write the uuid with hyphens.
                text = record.read_text(errors='replace').replace('-', '')
                if uuid in text:
                    return f'/{directory}/{record.name} names its physical volume'
    return None


def _find_raid(root: Path, file: int) -> str | None:
    """Return the array of the host that the superblocks of a device name, or None."""
    size = os.lseek(file, 0, os.SEEK_END)
    # Version 1.0 and 0.90, whose superblocks are at the end.
    ends = ((size // _SECTOR - 16) & ~7) * _SECTOR, (size & ~65535) - 65536
    for offset in (*_RAID_STARTS, *(end for end in ends if end >= 0)):
        block = os.pread(file, 256, offset).ljust(256, b'\0')
        # Version 0.90 has the byte order of the host that made it.
        magic = {*struct.unpack_from('<I', block), *struct.unpack_from('>I', block)}
        if _RAID_MAGIC not in magic:
            continue
        (version,) = struct.unpack_from('<I', block, 4)
        name = block[_RAID_NAME].rstrip(b'\0').decode('utf-8', 'replace')
        host = (root / 'proc/sys/kernel/hostname').read_text().strip()
        home, separator, _ = name.partition(':')
        if version != 1 or not separator:
            return 'it belongs to a RAID array that names no host'
        if home == host:
            return f'it belongs to the RAID array {name} of this host'
    return None
