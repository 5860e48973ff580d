# SPDX-License-Identifier: Apache-2.0
"""Child processes with a log each: started, waited for, and ended with all they began.

Each child leads a process group of its own, so that its workers end with it. A record
on disk lets another run of the launcher end them too.
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
from typing import Final, Self

from devstack.launcher.failure import LaunchFailed

_PATIENCE: Final = 20.0  # seconds for a clean end, before SIGKILL
_PAUSE: Final = 0.05
_MORTAL: Final = (sys.executable, str(Path(__file__).with_name('mortal.py')))


@dataclass(frozen=True, slots=True)
class Group:
    """A process group by its leader; the time of birth tells it from a later one."""

    name: str
    pid: int
    born: str

    @classmethod
    def of(cls, name: str, pid: int) -> Self:
        return cls(name, pid, _birth(pid))

    @property
    def ours(self) -> bool:
        """False: the leader is gone and its number was given to somebody else."""
        return _birth(self.pid) in (self.born, '')

    def members(self) -> list[int]:
        """Those that still run, the leader or not."""
        if not self.ours:
            return []
        return [pid for pid in _all_pids() if _status(pid)[:2] == ('', str(self.pid))]

    def end(self, patience: float = _PATIENCE) -> None:
        """Ask the leader, then those that it left; kill all after ``patience`` s."""
        deadline = time.monotonic() + patience
        if self.pid in self.members():
            self._send(os.kill, signal.SIGTERM)
            _wait(lambda: self.pid not in self.members(), deadline)
        self.signal(signal.SIGTERM)
        _wait(lambda: not self.members(), deadline)
        while self.members():
            self.signal(signal.SIGKILL)
            time.sleep(_PAUSE)

    def signal(self, number: int) -> None:
        """To all of them."""
        if self.members():
            self._send(os.killpg, number)

    def _send(self, send: Callable[[int, int], None], number: int) -> None:
        try:
            send(self.pid, number)
        except ProcessLookupError:
            return  # it was quicker


def _wait(happened: Callable[[], bool], deadline: float) -> None:
    while not happened() and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def _all_pids() -> list[int]:
    return [int(path.name) for path in Path('/proc').iterdir() if path.name.isdigit()]


def _status(pid: int) -> tuple[str, str, str]:
    """'gone' or '', the group, the time of birth. A zombie is gone."""
    try:
        text = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return 'gone', '', ''
    # The second field is a name in brackets, which may hold spaces and brackets.
    fields = text.rpartition(')')[2].split()
    return ('gone' if fields[0] in 'ZX' else ''), fields[2], fields[19]


def _birth(pid: int) -> str:
    """Empty when there is no such process."""
    return _status(pid)[2]


class Child:
    """One process that this one started."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None  # None: not started
        self._group: Group | None = None

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        survive: bool = False,
    ) -> None:
        """``survive``: it may outlive us; else the kernel ends it when we end.

        That is bound to the thread which calls this, not to the whole process.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open('ab') as log:
            self._process = subprocess.Popen(
                [*([] if survive else _MORTAL), *command],
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._group = Group.of(self.name, self._process.pid)

    @property
    def group(self) -> Group:
        if self._group is None:
            raise RuntimeError(f'{self.name} was not started')
        return self._group

    @property
    def status(self) -> int | None:
        """The exit status; None: it runs."""
        return None if self._process is None else self._process.poll()

    def until(self, ready: Callable[[], bool], limit: float = 60.0) -> None:
        """Wait until ``ready`` says so.

        :raises LaunchFailed: it ended, or ``limit`` seconds have passed
        """
        deadline = time.monotonic() + limit
        while not ready():
            if self.status is not None:
                raise LaunchFailed(f'{self.tail()}\n\n{self.name} ended by itself.')
            if time.monotonic() > deadline:
                raise LaunchFailed(
                    f'{self.tail()}\n\n{self.name} is not ready after {limit:.0f} s.'
                )
            time.sleep(_PAUSE)

    def end(self, patience: float = _PATIENCE) -> int | None:
        """Clean, or by force after ``patience`` seconds; its exit status."""
        if self._process is None:
            return None
        # A member that only waits to be collected by us counts as gone.
        self.group.end(patience)
        return self._process.wait()

    def kill(self) -> None:
        """At once, as a power cut would."""
        self.group.signal(signal.SIGKILL)
        self.end()

    def signal(self, number: int) -> None:
        """To the leader alone, as systemd does."""
        if self._process is not None:
            self._process.send_signal(number)

    def tail(self, lines: int = 20) -> str:
        """The end of its log."""
        return '\n'.join(self.log.read_text(errors='replace').splitlines()[-lines:])


def write_record(path: Path, groups: Sequence[Group]) -> None:
    path.write_text(json.dumps([asdict(group) for group in groups]))


def read_record(path: Path) -> list[Group]:
    """Those of an earlier run; none when it left no record."""
    if not path.is_file():
        return []
    return [Group(**fields) for fields in json.loads(path.read_text())]
