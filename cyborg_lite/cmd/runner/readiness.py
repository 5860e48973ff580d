# SPDX-License-Identifier: Apache-2.0
"""States whether a daemon can serve: in the log, and to systemd (``STATUS=``).

systemd starts the units that wait for a daemon when it gets ``READY=1``.
"""

import threading
from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

from oslo_log import log

from cyborg_lite.cmd.runner.watchdog import ServiceManager

LOG = log.getLogger(__name__)

_PAUSE: Final = 3.0  # seconds between two checks
# Seconds to wait for the first check. Its line then precedes those of later signals.
_FIRST_CHECK: Final = 3.0


@runtime_checkable
class Checked(Protocol):
    """A daemon that runs, but may be unable to serve."""

    def find_fault(self) -> str:
        """Return why the daemon cannot serve; empty: it can. The call may block."""
        ...


class Readiness:
    """Checks a daemon until its stop, and states each change."""

    def __init__(self, manager: ServiceManager, find_fault: Callable[[], str]) -> None:
        self._manager = manager
        self._find_fault = find_fault
        self._fault: str | None = None  # that was stated; None: nothing was stated
        self._stopping = threading.Event()
        self._has_checked = threading.Event()

    def start(self) -> None:
        """Check in a thread from now on."""
        threading.Thread(target=self._run, name='readiness', daemon=True).start()
        self._has_checked.wait(_FIRST_CHECK)

    def stop(self) -> None:
        """State nothing from now on."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._check()
            except Exception:  # a programming error must not end the thread
                LOG.exception('The readiness check failed')
            self._has_checked.set()
            self._stopping.wait(_PAUSE)

    def _check(self) -> None:
        fault = self._find_fault()
        if fault == self._fault or self._stopping.is_set():
            return
        self._fault = fault
        if fault:
            LOG.warning('Not ready: %s', fault)
            self._manager.notify(f'STATUS=Not ready: {fault}')
        else:
            LOG.info('Ready.')
            self._manager.notify('READY=1', 'STATUS=Ready.')
