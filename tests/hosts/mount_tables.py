# SPDX-License-Identifier: Apache-2.0
"""Mount tables that do not show the root file system of the host ``nvme-ascend``.

The root file system of that host is ext4 on the plain partition nvme0n1p2.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_TABLES: Final = tuple(
    f'proc/{name}' for name in ('mounts', '1/mounts', 'self/mountinfo', '1/mountinfo')
)
_LAYERS: Final = '/var/lib/docker/overlay2/l/A:/var/lib/docker/overlay2/l/B'
# What a container sees without the process namespace of the host.
_CONTAINER: Final = f"""\
overlay / overlay rw,lowerdir={_LAYERS},upperdir=/var/lib/docker/overlay2/C/diff 0 0
proc /proc proc rw 0 0
/dev/sdb1 /etc/hosts ext4 rw 0 0
"""
FAULTS: Final[Mapping[str, Callable[[Path], object]]] = {
    'missing': lambda _: None,
    'empty': lambda path: path.write_text(''),
    'garbled': lambda path: path.write_text('garbage: =\n / \n%s - -\n'),
    'not UTF-8': lambda path: path.write_bytes(b'/dev/nvme0n1p2 / ext4 \xff 0 0\n'),
    'too large': lambda path: path.write_text(
        '/dev/nvme0n1p2 / ext4 rw 0 0\n' + 'x' * (1 << 20)
    ),
    'unreadable': lambda path: path.mkdir(),
    'a FIFO': os.mkfifo,
    'of a container': lambda path: path.write_text(_CONTAINER),
    'of a live system': lambda path: path.write_text('/dev/loop0 / squashfs ro 0 0\n'),
    'of another host': lambda path: path.write_text('/dev/sda2 / ext4 rw 0 0\n'),
    'of a network boot': lambda path: path.write_text('10.0.0.1:/r / nfs4 rw 0 0\n'),
}


def replace_tables(root: Path, fault: str) -> None:
    """Replace all mount tables of a host by faulty ones."""
    for name in _TABLES:
        path = root / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        FAULTS[fault](path)
