# SPDX-License-Identifier: Apache-2.0
"""Child processes that are forked from a process with the modules of the daemons.

A daemon that imports its modules itself needs ten times as much CPU time to start.
"""

import ctypes
import multiprocessing
import os
import runpy
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

from devstack.launcher.processes import Child

_PR_SET_PDEATHSIG: Final = 1
_CONTEXT: Final = multiprocessing.get_context('forkserver')
_CONTEXT.set_forkserver_preload(
    [
        'tests.servers.forked_child',
        'cyborg_lite.cmd.daemons.standalone',
        'cyborg_lite.cmd.dbsync.main',
        'cyborg_lite.cmd.manage.main',
        'cyborg_lite.cmd.status.main',
        # The daemons import them by name.
        'oslo_messaging._drivers.impl_rabbit',
        'psycopg',
        'pymysql',
        # The launcher imports it in a process of its own.
        'placement.deploy',
    ]
)


class ForkedChild(Child):
    """Child process of a command ``python -m MODULE ARGUMENT...``."""

    def _begin(self, command: Sequence[str], environment: dict[str, str]) -> '_Forked':
        module, *arguments = command[command.index('-m') + 1 :]
        parts = module, arguments, environment, self.log
        process = _Forked(_CONTEXT.Process(target=_run, args=parts, daemon=True))
        # Before that, no signal would reach its group.
        with suppress(ProcessLookupError):
            while process.poll() is None and os.getpgid(process.pid) != process.pid:
                time.sleep(0.001)
        return process


class _Forked:
    """A forked process with the methods of ``subprocess.Popen``."""

    def __init__(self, process: ForkServerProcess) -> None:
        process.start()
        assert process.pid is not None
        self.pid, self._process = process.pid, process

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode or 0

    def send_signal(self, sig: int, /) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, sig)


def _run(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path
) -> None:
    """Run a module as Python does with ``-m``."""
    # As after exec. The server ends with the test, and this process with the server.
    os.closerange(3, os.sysconf('SC_OPEN_MAX'))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    with log.open('ab') as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
            assert isinstance(stream, TextIOWrapper)
            stream.reconfigure(write_through=True)
    os.setsid()  # the test goes on
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment['PYTHONPATH'].split(os.pathsep)
    sys.argv[1:] = arguments
    # Else the module would run once more under another name.
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name='__main__', alter_sys=True)
