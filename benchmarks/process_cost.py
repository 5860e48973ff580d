# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a daemon and its child processes, from /proc."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.launcher.processes import Child

_TICKS: Final = os.sysconf('SC_CLK_TCK')
_PAGE: Final = os.sysconf('SC_PAGE_SIZE')


@dataclass
class Cost:
    """The cost of a block of code; the values are set at its end."""

    cpu: float = 0.0  # seconds
    wall: float = 0.0  # seconds
    memory: int = 0  # resident bytes at the end


class Meter:
    """Measures the process group of a child process."""

    def __init__(self, child: Child) -> None:
        self._child = child

    @contextmanager
    def measure(self) -> Iterator[Cost]:
        """Measure the block of a ``with`` statement."""
        cost = Cost()
        before, began = self.read_cpu(), time.monotonic()
        yield cost
        cost.cpu = self.read_cpu() - before
        cost.wall = time.monotonic() - began
        cost.memory = sum(_fields(pid)[21] for pid in self._pids()) * _PAGE

    def read_cpu(self) -> float:
        """Return the CPU seconds of the group since its start."""
        # User and system time: fields 14 and 15 of proc(5). Index 0 is field 3.
        return sum(sum(_fields(pid)[11:13]) for pid in self._pids()) / _TICKS

    def _pids(self) -> list[int]:
        return self._child.group.members()

    def read_shares(self) -> list[int]:
        """Return the proportional memory of each process, in bytes, largest first.

        Memory that several processes share counts in equal parts.
        """
        return sorted(map(_read_pss, self._pids()), reverse=True)


def _read_pss(pid: int) -> int:
    lines = Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
    (line,) = (line for line in lines if line.startswith('Pss:'))
    return int(line.split()[1]) * 1024


def _fields(pid: int) -> list[int]:
    """Return the fields of ``/proc/PID/stat`` from the state (as 0) on."""
    text = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return [0, *map(int, text[1:40])]
