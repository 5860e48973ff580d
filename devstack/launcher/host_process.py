# SPDX-License-Identifier: Apache-2.0
"""The process of the sample host: it has the emulated kernel and runs the service.

SIGUSR1 reboots the host: the service is killed, the kernel loses its state, and the
service starts again. SIGTERM stops the service and ends the process.
"""

import argparse
import os
import queue
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from devstack.launcher import host_reboot, paths
from devstack.launcher.emulated_kernel import SampleKernel
from tests.hosts import kernel_service

_STOP: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_DAEMON: Final = 'cyborg_lite.cmd.daemons.standalone'
_WRAPPER: Final = str(Path(__file__).with_name('die_with_parent.py'))
_POLL_INTERVAL: Final = 0.2  # seconds between two checks of the service


class HostProcess:
    """The service on the sample host; it is restarted with each boot of the host."""

    def __init__(self, kernel: SampleKernel) -> None:
        """Store the kernel and receive signals from now on."""
        self._kernel = kernel
        self._server = kernel_service.KernelService(kernel)
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in (*_STOP, host_reboot.SIGNAL):
            signal.signal(number, self._receive)

    def run(self) -> int:
        """Run the service until a signal or its end; return its exit status."""
        service = self._start()
        while service.poll() is None:
            try:
                number = self._signals.get(timeout=_POLL_INTERVAL)
            except queue.Empty:
                continue
            if number in _STOP:
                service.terminate()
                service.wait()
            else:
                service.kill()
                service.wait()
                self._kernel.reboot()
                print('Sample host: rebooted', flush=True)
                service = self._start()
        return service.returncode

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self._signals.put(number)

    def _start(self) -> 'subprocess.Popen[bytes]':
        command = [sys.executable, _WRAPPER, sys.executable, '-P', '-m']
        environment = {**os.environ, **self._server.environment(_DAEMON)}
        return subprocess.Popen(
            [*command, kernel_service.__name__], env=environment, umask=0o022
        )


def main() -> int:
    """Build the sample host and run the service on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('fixture')
    parser.add_argument('root', type=Path)
    arguments = parser.parse_args()
    images = paths.AGENT / 'images'
    return HostProcess(SampleKernel(arguments.fixture, arguments.root, images)).run()


if __name__ == '__main__':
    sys.exit(main())
