# SPDX-License-Identifier: Apache-2.0
"""Agent without root privileges, and a helper that starts its privileged process.

Run as this module it is the agent, as the user nobody. With ``elevate`` it is the
command in place of sudo: it asks the test, which is root, to start the privileged
process. That process writes to the tree as root, then the emulated kernel reacts.
"""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Sequence
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Final

__all__ = ['NOBODY', 'Elevator', 'runtime']

NOBODY: Final = 65534
_ELEVATE: Final = 'elevate'


class Elevator:
    """Server that starts privileged processes on request."""

    def __init__(self, environment: dict[str, str]) -> None:
        """Store the arguments.

        :param environment: additional environment of these processes
        """
        self.commands: list[Sequence[str]] = []
        self._environment = {**os.environ, **environment}
        self._name = f'cyborg-lite-{uuid.uuid4().hex}'
        self._listener = Listener(f'\0{self._name}', 'AF_UNIX')
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def command(self) -> str:
        """Command for ``[agent] privileged_command``."""
        return f'{sys.executable} -m {__name__} {_ELEVATE} {self._name}'

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                caller = self._listener.accept()
            except OSError:
                return  # closed
            with caller:
                arguments = caller.recv()
                self.commands.append(arguments)
                caller.send(self._start(arguments))

    def _start(self, arguments: Sequence[str]) -> int:
        # The library starts a daemon: this process ends when its child serves.
        command = [sys.executable, '-m', 'tests.hosts.privileged_process']
        started = subprocess.run(
            [*command, *arguments], env=self._environment, check=False
        )
        return started.returncode


def _elevate(name: str, arguments: Sequence[str]) -> int:
    with Client(f'\0{name}', 'AF_UNIX') as root:
        root.send(list(arguments))
        status: int = root.recv()
    return status


def _become_agent() -> None:
    """Drop all rights but reading, because the code may be in a directory of root."""
    rights = ['--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search']
    user = [f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
    agent = [sys.executable, '-m', 'cyborg_lite.cmd.daemons.agent', *sys.argv[1:]]
    os.execvp('setpriv', ['setpriv', *user, *rights, *agent])


def give(*directories: Path) -> None:
    """Give directories to nobody, as systemd does for the directories of a unit."""
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
        os.chown(directory, NOBODY, NOBODY)


if __name__ == '__main__':
    if _ELEVATE in sys.argv:
        index = sys.argv.index(_ELEVATE) + 1
        sys.exit(_elevate(sys.argv[index], sys.argv[index + 1 :]))
    _become_agent()
