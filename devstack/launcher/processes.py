# SPDX-License-Identifier: Apache-2.0
"""Child processes with one log file each: start, wait for readiness, stop.

Each child leads its own process group, so that its workers stop with it. A record on
disk allows a later run of the launcher to stop them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from devstack.launcher.failure import LaunchFailed

_STOP_TIMEOUT: Final = 20.0  # seconds from SIGTERM to SIGKILL
_POLL_INTERVAL: Final = 0.05  # seconds
_WRAPPER: Final = (
    sys.executable,
    str(Path(__file__).with_name('die_with_parent.py')),
)


@dataclass(frozen=True, slots=True)
class Group:
    """A process group, identified by pid and start time of its leader.

    The start time distinguishes the leader from a later process with the same pid.
    """

    name: str
    pid: int
    born: str  # start time in clock ticks since boot, as in /proc/PID/stat

    @classmethod
    def of(cls, name: str, pid: int) -> Self:
        """Return the group whose leader has the pid."""
        return cls(name, pid, _start_time(pid))

    @property
    def is_valid(self) -> bool:
        """Return False if another process has the pid of the leader now."""
        return _start_time(self.pid) in (self.born, '')

    def members(self) -> list[int]:
        """Return the pids of the running processes of the group."""
        if not self.is_valid:
            return []
        group = str(self.pid)
        return [pid for pid in _all_pids() if _status(pid)[:2] == ('', group)]

    def end(self, patience: float = _STOP_TIMEOUT) -> None:
        """Stop the group.

        Send SIGTERM to the leader, then to the remaining processes. Kill all of them
        after ``patience`` seconds.
        """
        deadline = time.monotonic() + patience
        if self.pid in self.members():
            self._send(os.kill, signal.SIGTERM)
            _wait(lambda: self.pid not in self.members(), deadline)
        self.signal(signal.SIGTERM)
        _wait(lambda: not self.members(), deadline)
        while self.members():
            self.signal(signal.SIGKILL)
            time.sleep(_POLL_INTERVAL)

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the group."""
        if self.members():
            self._send(os.killpg, number)

    def _send(self, send: Callable[[int, int], None], number: int) -> None:
        try:
            send(self.pid, number)
        except ProcessLookupError:
            return  # it has exited meanwhile


def _wait(condition: Callable[[], bool], deadline: float) -> None:
    while not condition() and time.monotonic() < deadline:
        time.sleep(_POLL_INTERVAL)


def _all_pids() -> list[int]:
    return [int(path.name) for path in Path('/proc').iterdir() if path.name.isdigit()]


def _status(pid: int) -> tuple[str, str, str]:
    """Return 'exited' or '', the process group and the start time.

    A zombie process counts as exited.
    """
    try:
        text = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return 'exited', '', ''
    # The second field is a name in parentheses. It may contain spaces and parentheses.
    fields = text.rpartition(')')[2].split()
    return ('exited' if fields[0] in 'ZX' else ''), fields[2], fields[19]


def _start_time(pid: int) -> str:
    """Return the start time, or an empty string if the process does not exist."""
    return _status(pid)[2]


class Process(Protocol):
    """The part of ``subprocess.Popen`` that a child needs."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...


class Child:
    """A child process with a log file."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self._process: Process | None = None  # None: not started
        self._group: Group | None = None

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        survive: bool = False,
    ) -> None:
        """Start the process.

        :param survive: if False, the kernel stops the child when the calling thread
            (not only the process) exits
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        wrapped = [*([] if survive else _WRAPPER), *command]
        self._process = self._begin(wrapped, {**os.environ, **(environment or {})})
        self._group = Group.of(self.name, self._process.pid)

    def _begin(self, command: Sequence[str], environment: dict[str, str]) -> Process:
        """Return a new process, which leads a process group."""
        with self.log.open('ab') as log:
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def group(self) -> Group:
        """The process group of the child."""
        if self._group is None:
            raise RuntimeError(f'{self.name} has not been started')
        return self._group

    @property
    def status(self) -> int | None:
        """The exit status, or None while the process runs."""
        return None if self._process is None else self._process.poll()

    def until(self, ready: Callable[[], bool], limit: float = 120.0) -> None:
        """Wait until ``ready`` returns True.

        :raises LaunchFailed: if the process exits, or after ``limit`` seconds
        """
        deadline = time.monotonic() + limit
        while not ready():
            if self.status is not None:
                raise LaunchFailed(f'{self.tail()}\n\n{self.name} exited unexpectedly.')
            if time.monotonic() > deadline:
                raise LaunchFailed(
                    f'{self.tail()}\n\n{self.name} is not ready after {limit:.0f} s.'
                )
            time.sleep(_POLL_INTERVAL)

    def end(self, patience: float = _STOP_TIMEOUT) -> int | None:
        """Stop the process, kill it after ``patience`` seconds; return the status."""
        if self._process is None:
            return None
        # A zombie, which waits for the call below, counts as exited.
        self.group.end(patience)
        return self._process.wait()

    def kill(self) -> None:
        """Kill the process group at once."""
        self.group.signal(signal.SIGKILL)
        self.end()

    def signal(self, number: int) -> None:
        """Send a signal to the leader only, as systemd does."""
        if self._process is not None:
            self._process.send_signal(number)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the log."""
        return '\n'.join(self.log.read_text(errors='replace').splitlines()[-lines:])


def write_record(path: Path, groups: Sequence[Group]) -> None:
    """Write the process groups of this run to a file."""
    path.write_text(json.dumps([asdict(group) for group in groups]))


def read_record(path: Path) -> list[Group]:
    """Return the process groups of a previous run; empty if there is no record."""
    if not path.is_file():
        return []
    return [Group(**fields) for fields in json.loads(path.read_text())]
