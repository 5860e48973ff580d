# SPDX-License-Identifier: Apache-2.0
"""Holds requests until the work that they ask for has ended.

nova-compute reads the ARQs of an instance once and then waits for the events of those
that are not resolved. An instance that is unshelved has no host at that time, so Nova
drops the events and never learns the result of the bind from them. Such a request is
held, and so is a client that waits for an operation.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from cyborg_lite.errors.daemons import ServiceUnavailable

T = TypeVar('T')

# Seconds between two reads. They double, because most work ends soon.
_FIRST_INTERVAL: Final = 0.1
_LAST_INTERVAL: Final = 1.0


class Hold:
    """Limits the time of each hold and the number of concurrent ones. Thread-safe."""

    def __init__(self, places: int, stopping: threading.Event) -> None:
        """Store the limits.

        :param places: number of requests that are held at the same time
        :param stopping: set when the process stops, which ends all holds
        """
        self._places = threading.Semaphore(places)
        self._stopping = stopping

    def wait(
        self,
        value: T,
        read: Callable[[], T],
        is_unfinished: Callable[[T], bool],
        seconds: float,
    ) -> T:
        """Return what a request reads after the end of the work.

        If no place is free or the time is over, return the last value.

        :param value: as it was read
        :param read: reads it again
        :param is_unfinished: returns True while the work runs
        :param seconds: of the hold, without its last read; 0: do not wait
        """
        if not is_unfinished(value) or not self._places.acquire(blocking=False):
            return value
        try:
            deadline, interval = time.monotonic() + seconds, _FIRST_INTERVAL
            while is_unfinished(value):
                remaining = deadline - time.monotonic()
                if remaining <= 0 or self._stopping.wait(min(interval, remaining)):
                    break
                interval = min(2 * interval, _LAST_INTERVAL)
                # An error would fail the build of the instance in Nova. The conductor
                # may only be starting.
                with suppress(ServiceUnavailable):
                    value = read()
        finally:
            self._places.release()
        return value
