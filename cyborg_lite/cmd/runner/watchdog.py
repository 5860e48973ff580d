# SPDX-License-Identifier: Apache-2.0
"""Notifications of the watchdog of systemd (sd_notify(3), ``WatchdogSec=``).

systemd restarts a daemon that sends no notification for ``WatchdogSec=``. A daemon that
hangs as a whole sends none. A daemon whose essential thread has ended exits by itself.
oslo.service sends only the notification that a daemon is ready.
"""

import os
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, Self, runtime_checkable

from oslo_log import log

LOG = log.getLogger(__name__)

_ALIVE: Final = b'WATCHDOG=1'
_MICRO: Final = 1e6
_SHARE: Final = 3  # notifications within WatchdogSec=; systemd advises at least two


@runtime_checkable
class Watched(Protocol):
    """A daemon with threads that must run until its stop."""

    def list_threads(self) -> Sequence[threading.Thread]:
        """Return the started threads without which the daemon cannot work."""
        ...


class Watchdog:
    """Sends notifications while all threads of the daemon run."""

    def __init__(self, address: str, interval: float) -> None:
        # address: path of a Unix socket, or an abstract name after an ``@``; empty:
        # systemd expects no notifications.
        self._address = f'\0{address[1:]}' if address.startswith('@') else address
        self._interval = interval  # seconds between two notifications
        self._stopping = threading.Event()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Return the watchdog of this process.

        Call it before the notification that the daemon is ready, which removes the
        address from the environment.
        """
        address = environment.get('NOTIFY_SOCKET', '')
        text = environment.get('WATCHDOG_USEC', '')
        process = environment.get('WATCHDOG_PID', str(os.getpid()))
        if not address or not text.isdecimal() or process != str(os.getpid()):
            return cls('', 0.0)
        seconds = int(text) / _MICRO
        return cls(address if seconds else '', seconds / _SHARE)

    @property
    def is_expected(self) -> bool:
        """The notifications that systemd expects must be sent."""
        return bool(self._address)

    def start(self, daemon: object) -> None:
        """Send notifications in a thread from now on, if systemd expects them."""
        if not self.is_expected:
            return
        arguments = (daemon,)
        threading.Thread(
            target=self._run, args=arguments, name='watchdog', daemon=True
        ).start()

    def stop(self) -> None:
        """Ignore threads that end from now on, and send further notifications."""
        self._stopping.set()

    def _run(self, daemon: object) -> None:
        while True:
            names = list_ended_threads(daemon)
            if names and not self._stopping.is_set():
                LOG.error('Threads have ended: %s. Exiting.', ', '.join(names))
                os._exit(1)
            self._notify()
            if self._stopping.is_set():
                threading.Event().wait(self._interval)
            else:
                self._stopping.wait(self._interval)

    def _notify(self) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(_ALIVE, self._address)
        except OSError as error:
            LOG.warning('Cannot notify systemd: %s', error)


def list_ended_threads(daemon: object) -> list[str]:
    """Return the names of the essential threads of a daemon that have ended."""
    if not isinstance(daemon, Watched):
        return []
    return [thread.name for thread in daemon.list_threads() if not thread.is_alive()]
