# SPDX-License-Identifier: Apache-2.0
"""Several daemons in one process."""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from cyborg_lite.cmd.runner import daemon
from cyborg_lite.cmd.runner.readiness import Checked
from cyborg_lite.cmd.runner.watchdog import Watched
from cyborg_lite.errors.base import CyborgError


@runtime_checkable
class Retirable(Protocol):
    """A daemon with periodic work that can stop before its RPC server does."""

    def retire(self) -> None:
        """Stop the periodic work and continue to serve calls."""
        ...


class DaemonGroup:
    """Several daemons that start and stop as one."""

    def __init__(
        self,
        daemons: Sequence[daemon.Daemon],
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        # In start order; each may depend on earlier ones, both to serve and to stop.
        self._daemons = daemons
        self._prepare = prepare  # called before the first daemon starts
        self._started: list[daemon.Daemon] = []

    def start(self) -> None:
        """Start the daemons in order. If one fails, stop the earlier ones and raise."""
        self._prepare()
        for service in self._daemons:
            try:
                service.start()
            except CyborgError:
                self.wait()
                raise
            self._started.append(service)

    def list_threads(self) -> list[threading.Thread]:
        """Return the essential threads of all daemons."""
        watched = [item for item in self._started if isinstance(item, Watched)]
        return [thread for service in watched for thread in service.list_threads()]

    def find_fault(self) -> str:
        """Return why a daemon cannot serve; empty: all can."""
        checked = [item for item in self._started if isinstance(item, Checked)]
        return next((fault for item in checked if (fault := item.find_fault())), '')

    def stop(self) -> None:
        """Stop the periodic work of all daemons.

        A daemon itself stops in ``wait``, after the daemons that depend on it.
        """
        for service in self._started:
            if isinstance(service, Retirable):
                service.retire()

    def wait(self) -> None:
        """Stop the daemons one after the other, in reverse order of their start."""
        while self._started:
            service = self._started.pop()
            service.stop()
            service.wait()
