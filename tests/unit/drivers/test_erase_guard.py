# SPDX-License-Identifier: Apache-2.0
"""The checks of the privileged process before a tool destroys the data of a drive."""

import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite.drivers.host import privileged, privileges

_CONTROLLER: Final = 'sys/devices/pci0000:c0/0000:c1:00.0/nvme/nvme0'
_DISK: Final = f'{_CONTROLLER}/nvme0n1'
_PART: Final = f'{_DISK}/nvme0n1p1'
_SIZE: Final = 1 << 20
_LINES: Final = """
run /usr/sbin/nvme (version|id-ctrl /dev/nvme0|sanitize /dev/nvme0 --sanact=4)
run /usr/sbin/nvme smart-log /dev/nvme0 --output-format=json
run /usr/sbin/nvme (delete-ns /dev/nvme0 --namespace-id=1|write-zeroes)
run /usr/sbin/nvme format /dev/[a-z0-9]+ --ses=1 --force
run /usr/sbin/blkdiscard (--version|--zeroout /dev/[a-z0-9]+)
"""
ERASES: Final = [
    ['nvme', 'sanitize', '/dev/nvme0', '--sanact=4'],
    ['nvme', 'format', '/dev/nvme0n1', '--ses=1', '--force'],
    ['nvme', 'delete-ns', '/dev/nvme0', '--namespace-id=1'],
    ['blkdiscard', '--zeroout', '/dev/nvme0n1'],
]
QUERIES: Final = [
    ['nvme', 'version'],
    ['nvme', 'id-ctrl', '/dev/nvme0'],
    ['nvme', 'smart-log', '/dev/nvme0', '--output-format=json'],
    ['blkdiscard', '--version'],
]


def write(path: Path, content: str | bytes = '') -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def add_process(root: Path, number: int, mounts: str) -> None:
    """Add a process with a mount namespace of its own."""
    directory = root / f'proc/{number}'
    write(directory / 'mountinfo', mounts)
    (directory / 'ns').mkdir()
    (directory / 'ns/mnt').symlink_to(f'mnt:[{number}]')


@pytest.fixture
def root(tmp_path: Path, as_root: None) -> Path:
    """Build a host with a free drive that has a partition."""
    for directory, number in ((_DISK, '259:0'), (_PART, '259:1')):
        (tmp_path / directory / 'holders').mkdir(parents=True)
        write(tmp_path / directory / 'dev', f'{number}\n')
        write(tmp_path / 'dev' / Path(directory).name, bytes(_SIZE))
    write(tmp_path / _PART / 'partition', '1\n')
    for link, target in (
        ('sys/class/nvme/nvme0', _CONTROLLER),
        ('sys/block/nvme0n1', _DISK),
    ):
        (tmp_path / link).parent.mkdir(parents=True)
        (tmp_path / link).symlink_to(tmp_path / target)
    add_process(tmp_path, 1, '22 1 8:1 / / rw - ext4 /dev/sda1 rw\n')
    write(tmp_path / 'proc/sys/kernel/hostname', 'compute-1\n')
    (tmp_path / 'etc/lvm').mkdir(parents=True)
    for name in ('nvme', 'blkdiscard'):
        write(tmp_path / 'usr/sbin' / name, f'#!/bin/sh\necho "$*" >> {tmp_path}/calls')
        (tmp_path / 'usr/sbin' / name).chmod(0o755)
    write(tmp_path / privileges.DIRECTORY / 'nvme_driver.conf', _LINES)
    return tmp_path


def check_refused(root: Path, reason: str) -> None:
    """Check that all erases are refused with the reason, and queries are not."""
    for command in ERASES:
        with pytest.raises(PermissionError, match=reason):
            privileged.run(command, 30)
    assert not (root / 'calls').exists()
    for command in QUERIES:
        assert privileged.run(command, 30)[0] == 0


def test_free_drive_is_erased(root: Path) -> None:
    for command in ERASES:
        assert privileged.run(command, 30)[0] == 0
    lines = (root / 'calls').read_text().splitlines()
    assert lines == [' '.join(command[1:]) for command in ERASES]


def hold(root: Path) -> None:
    (root / _PART / 'holders/dm-0').mkdir()


def mount(root: Path) -> None:
    add_process(root, 77, '30 1 259:1 / /mnt/data rw - xfs /dev/x rw\n')


def mount_subvolume(root: Path) -> None:
    add_process(root, 77, '30 1 0:45 / /mnt/sub rw - btrfs /dev/nvme0n1 rw\n')


def export(root: Path) -> None:
    exports = root / 'sys/kernel/config/nvmet/subsystems/data'
    write(exports / 'namespaces/1/device_path', '/dev/nvme0n1\n')


def build_raid(name: bytes, version: int = 1) -> bytes:
    head = struct.pack('<II', 0xA92B4EFC, version)
    return head.ljust(32, b'\1') + name.ljust(224, b'\0')


def place(name: str, offset: int, content: bytes) -> Callable[[Path], None]:
    """Return a function that writes the content to a device."""

    def change(root: Path) -> None:
        with (root / 'dev' / name).open('r+b') as device:
            device.seek(offset)
            device.write(content)

    return change


_VOLUME: Final = b'A1' * 16
_LABEL: Final = (
    b'LABELONE'.ljust(20, b'\0') + struct.pack('<I', 32) + b'LVM2 001' + _VOLUME
)


def record_volume(root: Path) -> None:
    place('nvme0n1p1', 512, _LABEL)(root)
    text = _VOLUME.decode()
    write(root / 'etc/lvm/backup/data', f'id = "{text[:6]}-{text[6:]}"\n')


def lose_records(root: Path) -> None:
    place('nvme0n1', 512, _LABEL)(root)
    (root / 'etc/lvm').rmdir()


USES: Final[dict[str, tuple[Callable[[Path], None], str]]] = {
    'holder': (hold, 'nvme0n1p1 is in use: dm-0 is above it'),
    'mount': (mount, 'nvme0n1p1 is in use: it is mounted at /mnt/data'),
    'subvolume': (mount_subvolume, 'nvme0n1 is in use: it is mounted at /mnt/sub'),
    'export': (export, 'nvmet exports it as data'),
    'volume': (record_volume, '/etc/lvm/backup/data names its physical volume'),
    'no-records': (lose_records, 'there is no /etc/lvm'),
    'raid-1.1': (place('nvme0n1', 0, build_raid(b'compute-1:0')), 'compute-1:0'),
    'raid-1.2': (place('nvme0n1p1', 4096, build_raid(b'compute-1:0')), 'RAID array'),
    'raid-1.0': (
        place('nvme0n1', _SIZE - 8192, build_raid(b'compute-1:0')),
        'RAID array',
    ),
    'raid-0.90': (place('nvme0n1', _SIZE - 65536, build_raid(b'', 0)), 'no host'),
}


@pytest.mark.parametrize('use', USES)
def test_drive_in_use_is_not_erased(root: Path, use: str) -> None:
    change, reason = USES[use]
    change(root)
    check_refused(root, reason)


def test_content_of_an_instance_is_erased(root: Path) -> None:
    (root / 'etc/lvm/backup').mkdir()
    place('nvme0n1', 512, _LABEL)(root)
    place('nvme0n1p1', 4096, build_raid(b'guest:0'))(root)
    assert privileged.run(ERASES[0], 30)[0] == 0


def remove(path: str) -> Callable[[Path], None]:
    return lambda root: shutil.rmtree(root / path)


def remove_file(path: str) -> Callable[[Path], None]:
    return lambda root: (root / path).unlink()


def replace_table(root: Path) -> None:
    (root / 'proc/1/mountinfo').unlink()
    (root / 'proc/1/mountinfo').mkdir()


def remove_links(root: Path) -> None:
    (root / 'sys/class/nvme/nvme0').unlink()
    (root / 'sys/block/nvme0n1').unlink()


UNREADABLE: Final[dict[str, Callable[[Path], None]]] = {
    'holders': remove(f'{_PART}/holders'),
    'number': remove_file(f'{_DISK}/dev'),
    'device': remove_file('dev/nvme0n1p1'),
    'processes': remove('proc/1'),
    'tables': remove('proc/1/ns'),
    'table': replace_table,
    'exports': lambda root: (root / 'sys/module/nvmet').mkdir(parents=True),
    'drive': remove_links,
}


@pytest.mark.parametrize('fact', UNREADABLE)
def test_unreadable_fact_is_an_obstacle(root: Path, fact: str) -> None:
    UNREADABLE[fact](root)
    check_refused(root, 'cannot be read')


def test_other_drive_or_command_is_refused(root: Path) -> None:
    for command in (
        ['blkdiscard', '--zeroout', '/dev/sda'],
        ['nvme', 'format', '/dev/nvme7n1', '--ses=1', '--force'],
        ['nvme', 'write-zeroes'],
    ):
        with pytest.raises(PermissionError, match='drive'):
            privileged.run(command, 30)


def test_namespace_of_a_subsystem_is_checked(root: Path) -> None:
    """Native multipath puts the namespaces below the subsystem."""
    subsystem = root / 'sys/devices/virtual/nvme-subsystem/nvme-subsys0'
    subsystem.mkdir(parents=True)
    (root / _DISK).rename(subsystem / 'nvme0n1')
    (subsystem / 'nvme0').symlink_to(root / _CONTROLLER)
    link = root / 'sys/class/nvme-subsystem/nvme-subsys0'
    link.parent.mkdir()
    link.symlink_to(subsystem)
    block = root / 'sys/block/nvme0n1'
    block.unlink()
    block.symlink_to(subsystem / 'nvme0n1')
    assert privileged.run(ERASES[0], 30)[0] == 0
    (subsystem / 'nvme0n1/nvme0n1p1/holders/md0').mkdir()
    (root / 'calls').unlink()
    check_refused(root, 'md0 is above it')


def run_tool(*command: str) -> str:
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text.strip()


@pytest.fixture
def loop(root: Path) -> Iterator[Path]:
    """Put a real block device and a real process in place of the emulated ones."""
    image = root / 'image'
    image.write_bytes(bytes(16 * _SIZE))
    try:
        device = run_tool('losetup', '--find', '--show', str(image))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip('this machine has no loop devices')
    number = os.stat(device).st_rdev
    (root / 'dev/nvme0n1').unlink()
    os.mknod(root / 'dev/nvme0n1', stat.S_IFBLK | 0o600, number)
    (root / _DISK / 'dev').write_text(f'{os.major(number)}:{os.minor(number)}\n')
    # A container may not read the other processes of this machine.
    shutil.rmtree(root / 'proc/1')
    (root / f'proc/{os.getpid()}').symlink_to(f'/proc/{os.getpid()}')
    yield Path(device)
    run_tool('losetup', '--detach', device)


def test_real_device_that_is_open_exclusively(root: Path, loop: Path) -> None:
    file = os.open(loop, os.O_RDONLY | os.O_EXCL)
    check_refused(root, 'another user has it open exclusively')
    os.close(file)
    (root / 'calls').unlink()
    assert privileged.run(ERASES[0], 30)[0] == 0


def test_real_device_that_another_mount_namespace_mounts(
    root: Path, loop: Path
) -> None:
    run_tool('mkfs.ext4', '-q', str(loop))
    place = root / 'place'
    place.mkdir()
    script = f'mount {loop} {place} && echo mounted && read line; umount {place}'
    command = ['unshare', '--mount', 'sh', '-c', script]
    pipes: Any = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b'mounted\n'  # type: ignore[union-attr]  # it is a pipe
        assert str(loop) not in Path('/proc/self/mountinfo').read_text()
        (root / f'proc/{process.pid}').symlink_to(f'/proc/{process.pid}')
        check_refused(root, f'it is mounted at {place}')
        process.communicate(b'\n')
    (root / 'calls').unlink()
    assert privileged.run(ERASES[0], 30)[0] == 0
