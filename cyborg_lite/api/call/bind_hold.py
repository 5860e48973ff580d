# SPDX-License-Identifier: Apache-2.0
"""Holds requests for the ARQs of an instance until the bind of the instance ends.

nova-compute reads the ARQs of an instance once and then waits for the events of those
that are not resolved. An instance that is unshelved has no host at that time, so Nova
drops the events and never learns the result of the bind from them.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from oslo_log import log

from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.arqs.arqs import Arq, State

LOG = log.getLogger(__name__)

# Seconds between two reads. They double, because most binds end soon.
_FIRST_INTERVAL: Final = 0.1
_LAST_INTERVAL: Final = 1.0


class BindHold:
    """Limits the time of each hold and the number of concurrent ones. Thread-safe."""

    def __init__(self, seconds: float, places: int, stopping: threading.Event) -> None:
        # Of one hold, without its last read; 0: no request is held.
        self._seconds = seconds
        # places: number of requests that are held at the same time.
        self._places = threading.Semaphore(places)
        self._stopping = stopping  # set when the process stops, which ends all holds

    def wait_for_bind(
        self, arqs: tuple[Arq, ...], read: Callable[[], tuple[Arq, ...]]
    ) -> tuple[Arq, ...]:
        """Return the ARQs of an instance after its bind.

        If no place is free or the time is over, return the ARQs as they are.

        :param arqs: all ARQs of the instance
        :param read: reads them again
        """
        if not _has_bind(arqs) or not self._places.acquire(blocking=False):
            return arqs
        try:
            return self._read_until_resolved(arqs, read)
        finally:
            self._places.release()

    def _read_until_resolved(
        self, arqs: tuple[Arq, ...], read: Callable[[], tuple[Arq, ...]]
    ) -> tuple[Arq, ...]:
        deadline = time.monotonic() + self._seconds
        interval = _FIRST_INTERVAL
        while _has_bind(arqs):
            remaining = deadline - time.monotonic()
            if remaining <= 0 or self._stopping.wait(min(interval, remaining)):
                LOG.info(
                    'Instance %s: its ARQs are listed before the end of their bind',
                    arqs[0].instance_uuid,
                )
                break
            interval = min(2 * interval, _LAST_INTERVAL)
            # An error would fail the build of the instance in Nova. The conductor may
            # only be starting.
            with suppress(ServiceUnavailable):
                arqs = read()
        return arqs


def _has_bind(arqs: tuple[Arq, ...]) -> bool:
    """Check whether a bind of the ARQs is running."""
    return any(arq.state is State.BIND_STARTED for arq in arqs)
