# SPDX-License-Identifier: Apache-2.0
"""Reads PCI functions one after the other, with a time limit for each.

A read from a card that hangs may never return. It costs this card only: the scan goes
on with the next function. Later scans leave the card out until the read has returned.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from cyborg_lite.drivers.host.sysfs import PciFunction

T = TypeVar('T')

_FIRST_LIMIT: Final = 10.0  # seconds
# Further functions get less time, so that a scan with many hung cards still ends.
_FURTHER_LIMIT: Final = 2.0
_PAUSE: Final = 0.05  # seconds
_LATE: Final = 2 * _PAUSE  # duration from which a pause is late
_LATE_WEIGHT: Final = 0.1  # so that a wait also ends on a machine that is always busy


class Patience:
    """The seconds that a thread waits for hardware, without the delays of the machine.

    The wait consists of short pauses. If a pause ends late, the machine does not run
    this process, nor the thread that reads the hardware. Such a pause hardly counts.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def wait(self, is_done: Callable[[float], bool]) -> bool:
        """Return True if the work ends before the patience.

        :param is_done: waits for at most that many seconds, and returns True at the end
            of the work
        """
        while self._seconds > 0:
            begin = time.monotonic()
            if is_done(_PAUSE):
                return True
            is_late = time.monotonic() - begin > _LATE
            self._seconds -= _PAUSE * (_LATE_WEIGHT if is_late else 1)
        return is_done(0)


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """The result for one function."""

    function: PciFunction
    value: T | None = None
    is_hung: bool = False  # the read has not returned; there is no value


class TimedScan:
    """Scans of one driver. It remembers the functions that hang."""

    def __init__(
        self, first_limit: float = _FIRST_LIMIT, further_limit: float = _FURTHER_LIMIT
    ) -> None:
        self._first_limit = first_limit  # seconds for a function
        # Seconds for a function after one that hangs.
        self._further_limit = further_limit
        self._hung: dict[str, threading.Thread] = {}  # by address

    def read(
        self, functions: Sequence[PciFunction], operation: Callable[[PciFunction], T]
    ) -> Iterator[Reading[T]]:
        """Yield the result of the operation for each function, in order.

        :raises BaseException: the operation has raised it
        """
        hung = self._hung.items()
        self._hung = {address: thread for address, thread in hung if thread.is_alive()}
        pending = [item for item in functions if item.address not in self._hung]
        limit = self._first_limit
        for function in functions:
            if function.address in self._hung:
                yield Reading(function, is_hung=True)
        worker = _Worker(operation)
        try:
            for function in pending:
                try:
                    value = worker.read(function, Patience(limit))
                    yield Reading(function, value)
                except queue.Empty:
                    self._hung[function.address] = worker.thread
                    worker, limit = _Worker(operation), self._further_limit
                    yield Reading(function, is_hung=True)
        finally:
            worker.end()


class _Worker(Generic[T]):
    """A thread that reads one function after the other, on request."""

    def __init__(self, operation: Callable[[PciFunction], T]) -> None:
        self._operation = operation
        self._functions: queue.SimpleQueue[PciFunction | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = (
            queue.SimpleQueue()
        )
        # A daemon thread: the process must be able to exit while a read hangs.
        self.thread = threading.Thread(target=self._run, name='card-scan', daemon=True)
        self.thread.start()

    def read(self, function: PciFunction, patience: Patience) -> T | None:
        """Return the result for a function.

        :raises queue.Empty: it is not available in time; the worker ends after the read
        """
        answers: list[tuple[T | None, BaseException | None]] = []

        def receive(seconds: float) -> bool:
            with suppress(queue.Empty):
                answers.append(self._answers.get(timeout=seconds))
            return bool(answers)

        self._functions.put(function)
        if not patience.wait(receive):
            self.end()
            raise queue.Empty
        ((value, error),) = answers
        if error is not None:
            raise error
        return value

    def end(self) -> None:
        """End the thread after the present function."""
        self._functions.put(None)

    def _run(self) -> None:
        while (function := self._functions.get()) is not None:
            try:
                self._answers.put((self._operation(function), None))
            except BaseException as error:  # noqa: BLE001  # raised again by ``read``
                self._answers.put((None, error))
