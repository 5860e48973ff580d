# SPDX-License-Identifier: Apache-2.0
"""Hosts and kernels that go wrong on purpose, for the conformance suite."""

import enum
import errno
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.kernel import Kernel
from cyborg_lite.drivers.sysfs import Host

_GARBAGE: Final = b'\xff\xfe 0xgarbage: =\x00 -7\n%s'


class Fault(enum.StrEnum):
    MISSING = 'a missing'  # ENOENT, of a file that was listed a moment ago
    UNREADABLE = 'an unreadable'  # EIO
    GARBLED = 'a garbled'


FAULTS: Final = tuple(Fault)


@dataclass(frozen=True)
class WatchedHost(Host):
    """Remembers each path that was asked for, once and in order."""

    seen: list[str] = field(default_factory=list, compare=False)

    def raw(self, path: str, size: int = 1 << 20) -> bytes | None:
        self._note(path)
        return super().raw(path, size)

    def names(self, path: str) -> tuple[str, ...]:
        self._note(path)
        return super().names(path)

    def has(self, path: str) -> bool:
        self._note(path)
        return super().has(path)

    def _note(self, path: str) -> None:
        if path not in self.seen:
            self.seen.append(path)


@dataclass(frozen=True)
class FaultyHost(Host):
    """One path of it is out of order."""

    path: str = ''
    fault: Fault = Fault.MISSING

    def raw(self, path: str, size: int = 1 << 20) -> bytes | None:
        if path != self.path:
            return super().raw(path, size)
        return _GARBAGE[:size] if self.fault is Fault.GARBLED else None

    def names(self, path: str) -> tuple[str, ...]:
        if path != self.path:
            return super().names(path)
        return ('garbage', '..', ' ') if self.fault is Fault.GARBLED else ()

    def has(self, path: str) -> bool:
        # What cannot be read is there all the same.
        gone = path == self.path and self.fault is Fault.MISSING
        return not gone and super().has(path)


class Death(BaseException):
    """The process of the agent ends here, as if it were killed."""


class Trouble(enum.Enum):
    NONE = enum.auto()
    REFUSAL = enum.auto()  # the kernel refuses, and nothing has changed
    DEATH_BEFORE = enum.auto()
    DEATH_AFTER = enum.auto()  # it has changed, and nobody was told
    HANG = enum.auto()  # it changes only once it is let go


@dataclass
class TroubledKernel:
    """Does what another one does, but for the one change at which there is trouble."""

    real: Kernel
    trouble: Trouble = Trouble.NONE
    at: int = 0  # which change, by number
    changes: int = 0
    let_go: threading.Event = field(default_factory=threading.Event)

    def write(self, root: Path, path: str, text: str) -> None:
        due = self._begin()
        self.real.write(root, path, text)
        self._end(due)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        due = self._begin()
        outcome = self.real.run(root, tool, arguments)
        self._end(due)
        return outcome

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        due = self._begin()
        outcome = self.real.load(command, seconds)
        self._end(due)
        return outcome

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return self.real.holders(root, files)

    def _begin(self) -> bool:
        due = self.changes == self.at
        self.changes += 1
        if due and self.trouble is Trouble.REFUSAL:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if due and self.trouble is Trouble.DEATH_BEFORE:
            raise Death
        if due and self.trouble is Trouble.HANG:
            self.let_go.wait()
        return due

    def _end(self, due: bool) -> None:
        if due and self.trouble is Trouble.DEATH_AFTER:
            raise Death
