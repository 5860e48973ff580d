# SPDX-License-Identifier: Apache-2.0
"""When a process dies: before or after one of the steps that outlive it.

A step is a transaction, a call to somebody else, or a change to the host: nothing else
is left of a process that is killed. They are found out by a run in which nobody dies.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cyborg_lite.db.engine import Database
from cyborg_lite.drivers.kernel import Kernel
from cyborg_lite.drivers.kit_faults import Death

T = TypeVar('T')


class Fate:
    """Of one run. It strikes once; the successors live."""

    def __init__(self, moment: int | None = None) -> None:
        """:param moment: by number, when a process dies; None: none does"""
        self.moments: list[str] = []  # in the order in which they were come to
        self.met: str | None = None  # the moment at which a process died
        self.at_death: Callable[[], None] = lambda: None
        self._moment = moment
        self._at_large = False
        self._dead = False

    @contextmanager
    def at_large(self) -> Iterator[None]:
        """It strikes, and counts moments, within this block alone."""
        self._at_large = True
        try:
            yield
        finally:
            self._at_large = False

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """:raises Death: before or after the body, and at all steps from then on"""
        self._come_to(f'before {what}')
        yield
        self._come_to(f'after {what}')

    def succeed(self) -> None:
        """There is a new process in the place of the dead one."""
        self._dead = False

    def _come_to(self, moment: str) -> None:
        # A process that is killed does not clean up. Ours unwinds, and must not.
        if self._dead:
            raise Death
        if not self._at_large:
            return
        self.moments.append(moment)
        if len(self.moments) - 1 == self._moment:
            self._dead, self.met = True, moment
            self.at_death()
            raise Death


class MortalDatabase(Database):
    """Each transaction that writes is a step of the conductor, by its own name."""

    fate = Fate()

    # Any: whatever the transaction takes.
    def write(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        with self.fate.step(f'the transaction {work.__name__}'):
            return super().write(work, *args, **kwargs)


class MortalKernel:
    """Each change to the host is a step of the agent."""

    def __init__(self, real: Kernel, fate: Fate) -> None:
        self._real = real
        self._fate = fate

    def write(self, root: Path, path: str, text: str) -> None:
        with self._fate.step(f'the write to {path}'):
            self._real.write(root, path, text)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        with self._fate.step(f'the run of {tool}'):
            return self._real.run(root, tool, arguments)

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        with self._fate.step(f'the run of {command[0]}'):
            return self._real.load(command, seconds)

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return self._real.holders(root, files)
