# SPDX-License-Identifier: Apache-2.0
"""Notifications of systemd (sd_notify(3)), and its watchdog (``WatchdogSec=``).

systemd restarts a daemon that sends no notification for ``WatchdogSec=``. A daemon that
hangs as a whole sends none. A daemon whose essential thread has ended exits by itself.
oslo.service can neither feed the watchdog nor state why a daemon is not ready.
"""

import os
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, Self, runtime_checkable

from oslo_log import log

LOG = log.getLogger(__name__)

_ALIVE: Final = 'WATCHDOG=1'
_MICRO: Final = 1e6
_SHARE: Final = 3  # notifications within WatchdogSec=; systemd advises at least two


@runtime_checkable
class Watched(Protocol):
    """A daemon with threads that must run until its stop."""

    def list_threads(self) -> Sequence[threading.Thread]:
        """Return the started threads without which the daemon cannot work."""
        ...


class ServiceManager:
    """The socket of systemd that receives notifications."""

    def __init__(self, address: str) -> None:
        # address: path of a Unix socket, or an abstract name after an ``@``; empty:
        # systemd has not started this process.
        self._address = f'\0{address[1:]}' if address.startswith('@') else address

    @property
    def is_present(self) -> bool:
        """systemd has started this process."""
        return bool(self._address)

    def notify(self, *assignments: str) -> None:
        """Send assignments such as ``READY=1``, if systemd is present."""
        if not self.is_present:
            return
        text = '\n'.join(' '.join(item.splitlines()) for item in assignments)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(text.encode(), self._address)
        except OSError as error:
            LOG.warning('Cannot notify systemd: %s', error)


class Watchdog:
    """Sends notifications while all threads of the daemon run."""

    def __init__(self, manager: ServiceManager, interval: float) -> None:
        """Store the arguments.

        :param interval: seconds between two notifications; 0: systemd expects none
        """
        self.manager = manager
        self._interval = interval
        self._stopping = threading.Event()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Return the watchdog of this process."""
        manager = ServiceManager(environment.get('NOTIFY_SOCKET', ''))
        text = environment.get('WATCHDOG_USEC', '')
        process = environment.get('WATCHDOG_PID', str(os.getpid()))
        if not text.isdecimal() or process != str(os.getpid()):
            return cls(manager, 0.0)
        return cls(manager, int(text) / _MICRO / _SHARE)

    @property
    def is_expected(self) -> bool:
        """The notifications that systemd expects must be sent."""
        return self.manager.is_present and self._interval > 0

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
            self.manager.notify(_ALIVE)
            if self._stopping.is_set():
                threading.Event().wait(self._interval)
            else:
                self._stopping.wait(self._interval)


def list_ended_threads(daemon: object) -> list[str]:
    """Return the names of the essential threads of a daemon that have ended."""
    if not isinstance(daemon, Watched):
        return []
    return [thread.name for thread in daemon.list_threads() if not thread.is_alive()]
