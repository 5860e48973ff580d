# SPDX-License-Identifier: Apache-2.0
"""Points at which a daemon can crash: before and after each step that persists.

A step is a transaction, a call to another service, or a change to the host. Nothing
else of a killed process persists. A first run without a crash records all points.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from cyborg_lite.db.core.engine import Database
from cyborg_lite.drivers.host.kernel import Kernel
from cyborg_lite.testing.fault_injection import ProcessCrash, StepKernel

T = TypeVar('T')


class CrashPoint:
    """Crashes one process at one point of a run. Later processes do not crash."""

    def __init__(self, number: int | None = None) -> None:
        """Store the number.

        :param number: of the point at which a process crashes; None: no crash
        """
        self.points: list[str] = []  # descriptions of the points, in order
        self.reached: str | None = None  # the point at which a process crashed
        self.on_crash: Callable[[], None] = lambda: None
        self._number = number
        self._is_active = False
        self._is_crashed = False

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Count points, and crash, within the block only."""
        self._is_active = True
        try:
            yield
        finally:
            self._is_active = False

    @contextmanager
    def step(self, description: str) -> Iterator[None]:
        """Mark the block as a step.

        :raises ProcessCrash: before or after the block, and in all later steps until
            ``restart`` is called
        """
        self._reach(f'before {description}')
        yield
        self._reach(f'after {description}')

    def restart(self) -> None:
        """Allow steps again: a new process replaces the crashed one."""
        self._is_crashed = False

    def _reach(self, point: str) -> None:
        # The exception runs the cleanup of the crashed process, which a killed process
        # would not run. The cleanup must not take further steps.
        if self._is_crashed:
            raise ProcessCrash
        if not self._is_active:
            return
        self.points.append(point)
        if len(self.points) - 1 == self._number:
            self._is_crashed, self.reached = True, point
            self.on_crash()
            raise ProcessCrash


class CrashableDatabase(Database):
    """A database in which each writing transaction is a step of the conductor."""

    crash_point = CrashPoint()

    # Any: the arguments depend on the transaction.
    def write(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a transaction as a step named for its function."""
        with self.crash_point.step(f'the transaction {work.__name__}'):
            return super().write(work, *args, **kwargs)


class CrashableKernel(StepKernel):
    """A kernel in which each change to the host is a step of the agent."""

    def __init__(self, real: Kernel, crash_point: CrashPoint) -> None:
        self.real = real
        self.step = crash_point.step  # type: ignore[method-assign]  # same signature
