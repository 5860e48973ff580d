# SPDX-License-Identifier: Apache-2.0
"""Reads the lines of the kernel log that name a PCI function.

The kernel numbers the records of /dev/kmsg from its boot on (kernel:
ABI/testing/dev-kmsg). Other lines may contain secrets of the host, so they never leave
this module.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

# Number of the record, seconds since the boot of the host, and text.
LogLine: TypeAlias = tuple[int, float, str]

FILE: Final = 'dev/kmsg'  # below the root of the host
_RECORD: Final = re.compile(rb'\d+,(\d+),(\d+),[^;]*;([^\n]*)')
_NAMES_FUNCTION: Final = re.compile(rb'[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]')
_MAX_RECORD: Final = 8192  # bytes; the kernel refuses a smaller buffer
_MAX_LINES: Final = 500  # of one call; the next call returns the remaining ones
_MAX_TEXT: Final = 512  # characters of one line
_MAX_RECORDS: Final = 100_000  # read by one call

# The open log of this process and the number of its last record.
_position: dict[str, tuple[int, int]] = {}


class KernelLog:
    """The kernel log of a host, read directly or by the privileged process."""

    def __init__(
        self, root: Path, read_privileged: Callable[[str, int], Sequence[LogLine]]
    ) -> None:
        """Store the arguments.

        :param read_privileged: as ``read_lines``, in a process that may read the log
        """
        self._path = str(root / FILE)
        self._read_privileged = read_privileged

    def read(self, after: int) -> Sequence[LogLine]:
        """Return the lines after a record.

        :raises OSError: the log cannot be read
        """
        try:
            return read_lines(self._path, after)
        except PermissionError:  # kernel.dmesg_restrict is set
            lines = self._read_privileged(self._path, after)
            return [(number, seconds, text) for number, seconds, text in lines]


def read_lines(path: str, after: int) -> list[LogLine]:
    """Return at most 500 lines that name a PCI function, in the order of the log.

    :param after: number of the last record that the caller knows; -1: none
    :raises OSError: the log cannot be read
    """
    lines: list[LogLine] = []
    for record in _read_records(path, after):
        match = _RECORD.match(record)
        if match is None or int(match[1]) <= after:
            continue
        if _NAMES_FUNCTION.search(match[3]):
            text = match[3][:_MAX_TEXT].decode(errors='replace')
            lines.append((int(match[1]), int(match[2]) / 1e6, text))
        if len(lines) == _MAX_LINES:
            break
    return lines


def _read_records(path: str, after: int) -> Iterator[bytes]:
    if not stat.S_ISCHR(os.stat(path).st_mode):  # of an emulated host
        yield from Path(path).read_bytes().splitlines()
        return
    file, buffer = _open(path, after), bytearray(_MAX_RECORD)
    for _ in range(_MAX_RECORDS):
        try:
            # With eventlet os.read would wait for the next record.
            record = bytes(buffer[: os.readv(file, [buffer])])
        except BlockingIOError:
            return
        except BrokenPipeError:
            continue  # the kernel has overwritten records; read on after them
        match = _RECORD.match(record)
        if match is not None and _NAMES_FUNCTION.search(match[3]):
            _position[path] = file, int(match[1])
        yield record


def _open(path: str, after: int) -> int:
    """Return a file whose next record follows a record, or is the oldest one."""
    file, last = _position.pop(path, (-1, -1))
    if file < 0 or after < last:
        # The caller lacks records that this process has read: begin at the oldest.
        if file >= 0:
            os.close(file)
        file, last = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), -1
    _position[path] = file, last
    return file
