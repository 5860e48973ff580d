# SPDX-License-Identifier: Apache-2.0
"""Hosts and kernels with injected faults, for the conformance checks."""

import enum
import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.host.kernel import Kernel
from cyborg_lite.drivers.host.sysfs import Host

_GARBAGE: Final = b'\xff\xfe 0xgarbage: =\x00 -7\n%s'


class FileFault(enum.StrEnum):
    """A fault of one file; the value is used in messages."""

    MISSING = 'a missing'  # ENOENT, although the directory lists the file
    UNREADABLE = 'an unreadable'  # EIO
    GARBLED = 'a garbled'
    EMPTY = 'an empty'
    NOT_UTF8 = 'a non-UTF-8'
    CONTROL = 'a control character in'
    LONG = 'a long text in'  # 1,000 characters
    NUMBER = 'a number of 4,000 digits in'
    HEX_NUMBER = 'a hexadecimal number of 9,000 digits in'
    HUGE = 'a huge'  # 10 MB
    DANGLING = 'a dangling link at'
    LOOP = 'a looping link at'
    DIRECTORY = 'a directory at'
    FIFO = 'a FIFO at'  # nobody writes to it


FILE_FAULTS: Final = tuple(FileFault)
_CONTENTS: Final = {
    FileFault.EMPTY: b'',
    FileFault.NOT_UTF8: b'caf\xe9\n',
    FileFault.CONTROL: b'A\x00\x07\x1b[31m\xe2\x80\xaeB\n',
    FileFault.LONG: b'GPU UUID: ' + b'x' * 1000,
    FileFault.NUMBER: b'9' * 4000,
    FileFault.HEX_NUMBER: b'0x' + b'f' * 9000,
}
# Faults of a read, in contrast to those of a file.
_FAILED_READS: Final = frozenset(
    {FileFault.MISSING, FileFault.UNREADABLE, FileFault.GARBLED}
)
_HUGE_SIZE: Final = 10_000_000  # bytes


def build_fault_files(directory: Path) -> None:
    """Create one file of each kind in a new directory, named as the fault."""
    directory.mkdir()
    for fault, content in _CONTENTS.items():
        (directory / fault.name).write_bytes(content)
    huge = directory / FileFault.HUGE.name
    huge.write_bytes(b'1\n')
    os.truncate(huge, _HUGE_SIZE)
    (directory / FileFault.DANGLING.name).symlink_to('nothing')
    (directory / FileFault.LOOP.name).symlink_to(FileFault.LOOP.name)
    (directory / FileFault.DIRECTORY.name).mkdir()
    os.mkfifo(directory / FileFault.FIFO.name)


@dataclass(frozen=True)
class RecordingHost(Host):
    """A host that records each path that is read, once and in order."""

    paths: list[str] = field(default_factory=list, compare=False)

    def raw(self, path: str, size: int = 1 << 20) -> bytes | None:
        self._record(path)
        return super().raw(path, size)

    def names(self, path: str) -> tuple[str, ...]:
        self._record(path)
        return super().names(path)

    def has(self, path: str) -> bool:
        self._record(path)
        return super().has(path)

    def _record(self, path: str) -> None:
        if path not in self.paths:
            self.paths.append(path)


@dataclass(frozen=True)
class FaultyHost(Host):
    """A host on which one path has a fault."""

    path: str = ''
    fault: FileFault = FileFault.MISSING
    fault_files: Path = Path('/nonexistent')  # directory of ``build_fault_files``

    def _resolve(self, path: str) -> str | None:
        """Return the faulty file in place of the file at the faulty path."""
        location = self.fault_files / self.fault.name
        if path == self.path and os.path.lexists(location):
            return str(location)
        return super()._resolve(path)

    def raw(self, path: str, size: int = 1 << 20) -> bytes | None:
        """Return the content of a file; garbage or None at the faulty path."""
        if path != self.path or self.fault not in _FAILED_READS:
            return super().raw(path, size)
        return _GARBAGE[:size] if self.fault is FileFault.GARBLED else None

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory; invalid or none at the faulty path."""
        if path != self.path or self.fault not in _FAILED_READS:
            return super().names(path)
        return ('garbage', '..', ' ') if self.fault is FileFault.GARBLED else ()

    def has(self, path: str) -> bool:
        """Return True if a file exists. An unreadable file exists, too."""
        is_missing = path == self.path and self.fault is FileFault.MISSING
        return not is_missing and super().has(path)


class ProcessCrash(BaseException):
    """The emulated end of a process, as by SIGKILL."""


class FaultKind(enum.Enum):
    """A fault of one change to the host."""

    NONE = enum.auto()
    REFUSAL = enum.auto()  # the kernel returns EIO and changes nothing
    CRASH_BEFORE = enum.auto()  # the agent crashes before the change
    CRASH_AFTER = enum.auto()  # the agent crashes after the change
    HANG = enum.auto()  # the change blocks until `resume` is set


class StepKernel:
    """Passes each change to another kernel; a change is a step."""

    real: Kernel

    def step(self, description: str) -> AbstractContextManager[None]:
        """Return the context of a change."""
        raise NotImplementedError

    def write(self, root: Path, path: str, text: str) -> None:
        with self.step(f'the write to {path}'):
            self.real.write(root, path, text)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        with self.step(f'the run of {tool}'):
            return self.real.run(root, tool, arguments)

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        with self.step(f'the run of {command[0]}'):
            return self.real.load(command, seconds)

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return self.real.holders(root, files)


@dataclass
class FaultyKernel(StepKernel):
    """A kernel with a fault in one of the changes."""

    real: Kernel
    fault: FaultKind = FaultKind.NONE
    at: int = 0  # number of the faulty change, from 0
    changes: int = 0  # number of changes so far
    resume: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def step(self, description: str) -> Iterator[None]:
        """Count a change, and inject the fault into the faulty one."""
        fault = self.fault if self.changes == self.at else FaultKind.NONE
        self.changes += 1
        if fault is FaultKind.REFUSAL:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if fault is FaultKind.CRASH_BEFORE:
            raise ProcessCrash
        if fault is FaultKind.HANG:
            self.resume.wait()
        yield
        if fault is FaultKind.CRASH_AFTER:
            raise ProcessCrash
