# SPDX-License-Identifier: Apache-2.0
"""Locks of devices: one call of a driver at a time changes a device.

One table serves all components of an agent: preparation, programming, cleaning and
modes. A driver call may take hours, as a cleaning step, or never return, for example if
the kernel waits for a guest. The wait for a lock is therefore limited. Otherwise each
repetition of a call would keep one more thread of the RPC server, until no device of
the host can be used any more.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.devices.modes import ModeOrder

LONGEST_WAIT: Final = 20.0
"""Seconds. A call is repeated after ``[conductor] agent_timeout``, which is longer."""


class DeviceLocks:
    """The locks of all devices of a host."""

    def __init__(self, longest_wait: float = LONGEST_WAIT) -> None:
        self._longest_wait = longest_wait  # seconds until a wait fails
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}  # by control address
        # Time of the last order, by its class and control address.
        self._ordered_at: dict[tuple[type, str], int] = {}

    @contextmanager
    def lock(self, address: str) -> Iterator[None]:
        """Lock a device, by its control address.

        :raises ServiceUnavailable: another call of the driver has not returned in time
        """
        lock = self._find(address)
        if not lock.acquire(timeout=self._longest_wait):
            raise _describe_wait(address)
        try:
            yield
        finally:
            lock.release()

    def check_latest(self, order: LoadOrder | ModeOrder, reason: str) -> None:
        """Check that no later order was executed. The caller has locked the device.

        After a pause the agent may receive several orders at once. The conductor has
        given up the older ones.

        :param reason: of the error
        :raises DriverError: the order is stale
        """
        key = type(order), order.address
        latest = self._ordered_at.get(key, 0)
        if 0 < order.ordered_at < latest:
            raise DriverError(reason=reason)
        self._ordered_at[key] = max(order.ordered_at, latest)

    def check_unlocked(self, address: str) -> None:
        """Check without a wait that no call changes a device.

        :raises ServiceUnavailable: a call of the driver has not returned yet
        """
        if self._find(address).locked():
            raise _describe_wait(address)

    def _find(self, address: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(address, threading.Lock())


def _describe_wait(address: str) -> ServiceUnavailable:
    return ServiceUnavailable(what=f'The driver of device {address}')
