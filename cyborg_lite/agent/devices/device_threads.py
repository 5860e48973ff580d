# SPDX-License-Identifier: Apache-2.0
"""Threads that call drivers, one per device.

A driver call may never return. It must not delay the devices of other calls.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

UNFINISHED: Final = 'The driver has not returned.'

_MAX_PARALLEL_DEVICES: Final = 8
_Result = TypeVar('_Result')


class DeviceThreads(Generic[_Result]):
    """The calls that run, and the result of the last call of each device."""

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose  # begin of the names of the threads
        self._slots = threading.Semaphore(_MAX_PARALLEL_DEVICES)
        self._threads: dict[str, threading.Thread] = {}  # by device address
        self._results: dict[str, _Result] = {}  # likewise

    def is_running(self, address: str) -> bool:
        """Return True if the last call for a device has not returned."""
        thread = self._threads.get(address)
        return thread is not None and thread.is_alive()

    def run(
        self, calls: Mapping[str, Callable[[], _Result]], longest: float
    ) -> Mapping[str, _Result]:
        """Call functions, devices in parallel; return the results by device address.

        A device has no result if its call has not returned. It is not called again
        until then.

        :param calls: by device address; they do not raise
        :param longest: seconds to wait for all of them
        """
        for address, call in calls.items():
            if not self.is_running(address):
                self._start(address, call)
        end = time.monotonic() + longest
        for address in calls:
            self._threads[address].join(max(0.0, end - time.monotonic()))
        return {
            address: self._results[address]
            for address in calls
            if address in self._results and not self.is_running(address)
        }

    def _start(self, address: str, call: Callable[[], _Result]) -> None:
        def run() -> None:
            with self._slots:
                self._results[address] = call()

        self._results.pop(address, None)
        name = f'{self._purpose}-{address}'
        # A daemon thread, because the call of a driver may never return.
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads[address] = thread
        thread.start()
