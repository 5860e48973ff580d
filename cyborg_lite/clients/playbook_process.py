# SPDX-License-Identifier: Apache-2.0
"""The process that runs one playbook by ansible-runner, for ``clients/playbooks.py``.

The conductor starts this file with the path of a directory. The directory has
``order.json``, and receives the results as JSON lines in ``events``. The conductor
writes to the standard input while it has the lease of the job. The playbook is killed
if the input ends or receives nothing: another conductor may then run the job.

There are two processes, so that no playbook outlives a process that is killed. The
supervisor kills what the runner leaves, and the runner ends without its supervisor.
The file ``lock`` is locked while either runs.
"""

import contextlib
import ctypes
import fcntl
import importlib
import json
import os
import re
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from oslo_utils import strutils

POLL_SECONDS: Final = 1
CANCEL_SECONDS: Final = 10  # in which the runner kills its playbook
MAX_TEXT: Final = 500  # characters of a message of Ansible
_CREDENTIALS: Final = re.compile(r'(?<=://)[^/@\s]+@')
_ERROR: Final = re.compile(r'^(?:ERROR!|\[ERROR\]:)\s*(.+)$', re.MULTILINE)
_ESCAPES: Final = re.compile(r'\x1b\[[0-9;]*m')
# prctl(2): orphans below this process become its children.
_PR_SET_CHILD_SUBREAPER: Final = 36
_RESULTS: Final = {
    'runner_on_ok': 'ok',
    'runner_on_failed': 'FAILED',
    'runner_on_unreachable': 'UNREACHABLE',
}


class Lifeline:
    """The standard input, by which the conductor keeps the playbook alive."""

    def __init__(self, patience: float) -> None:
        """Store the argument.

        :param patience: seconds without a byte after which the conductor is lost
        """
        self._patience = patience
        self._last = time.monotonic()

    def is_lost(self) -> bool:
        """Return True if the conductor has ended or has lost the job."""
        while select.select([0], [], [], 0)[0]:
            if not os.read(0, 4096):
                return True
            self._last = time.monotonic()
        return time.monotonic() - self._last > self._patience


class EventWriter:
    """Writes one line per task that has ended. Any: events of ansible-runner."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._failure = ''  # of the first task that failed
        self._error = ''  # of Ansible itself, for example a missing playbook
        self._host_count = 0  # of the play

    def write_event(self, event: Mapping[str, Any]) -> bool:
        """Write an event. Return False: ansible-runner stores no copy of it."""
        data = event.get('event_data', {})
        kind = event.get('event', '')
        if kind in _RESULTS:
            self._write_result(kind, data)
        elif kind == 'playbook_on_stats':
            self._host_count = len(data.get('processed', {}))
        elif not self._error:
            match = _ERROR.search(_ESCAPES.sub('', event.get('stdout', '')))
            self._error = mask(match[1]) if match else ''
        return False

    def _write_result(self, kind: str, data: Mapping[str, Any]) -> None:
        result = data.get('res') or {}
        text = _RESULTS[kind]
        if kind == 'runner_on_ok':
            text = 'changed' if result.get('changed') else text
        else:
            message = mask(
                str(result.get('msg') or result.get('censored') or 'no text')
            )
            text = f'{text}: {message}'
            if data.get('ignore_errors'):
                text = f'{text} (ignored)'
            elif not self._failure:
                self._failure = f'{mask(str(data.get("task")))}: {message}'
        self._write(line=f'{mask(str(data.get("task")))}: {text}')

    def write_end(self, status: str) -> None:
        """Write how the playbook ended."""
        failure = self._failure or self._error
        if status == 'successful' and not self._host_count:
            status, failure = 'failed', 'The playbook has no play for the host.'
        self._write(status=status, failure=failure)

    def _write(self, **values: str) -> None:
        self._stream.write(json.dumps(values) + '\n')
        self._stream.flush()


def mask(text: str) -> str:
    """Return a text of Ansible in one short line, without passwords."""
    text = _CREDENTIALS.sub('***@', strutils.mask_password(text))
    return ' '.join(text.split())[:MAX_TEXT]


def kill_descendants() -> None:
    """Kill all processes that a playbook has left.

    ansible-runner kills the process group of the playbook. The workers of Ansible 2.19
    are in sessions of their own, so their tasks would go on.
    """
    while pids := _list_descendants(os.getpid()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.05)


def _list_descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            fields = path.read_text(encoding='utf-8').rpartition(')')[2].split()
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    descendants, pending = [], [pid]
    while pending:
        pending = [child for parent in pending for child in children.get(parent, [])]
        descendants += pending
    return descendants


def main(directory: Path) -> int:
    """Supervise the process that runs the playbook; return its exit status."""
    lock = (directory / 'lock').open('wb')
    fcntl.flock(lock, fcntl.LOCK_EX)
    reader, writer = os.pipe()
    runner = os.fork()
    _become_subreaper()
    if runner:
        os.close(reader)
        return supervise(runner, writer)
    # A signal for the process group of the supervisor must not kill both.
    os.setsid()
    os.dup2(reader, 0)
    os.close(reader)
    os.close(writer)
    run_playbook(directory)
    return 0


def _become_subreaper() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def supervise(runner: int, lifeline: int) -> int:
    """Forward the standard input to the runner until it ends; kill what it leaves.

    :param runner: id of the process
    :param lifeline: file descriptor of its standard input
    :returns: its exit status
    """
    end = os.pidfd_open(runner)
    sources, patience = [end, 0], None
    while end not in (ready := select.select(sources, [], [], patience)[0]):
        content = os.read(0, 4096) if ready else b''
        if content:
            with contextlib.suppress(BrokenPipeError):  # the runner is ending
                os.write(lifeline, content)
        elif ready:
            os.close(lifeline)
            sources, patience = [end], CANCEL_SECONDS
        else:
            os.kill(runner, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(runner, 0)[1])
    kill_descendants()
    return abs(status)


def run_playbook(directory: Path) -> None:
    """Run the playbook of the order."""
    order = json.loads((directory / 'order.json').read_text(encoding='utf-8'))
    run_directory = directory / 'run'
    run_directory.mkdir(mode=0o700)
    runner = importlib.import_module('ansible_runner')
    lifeline = Lifeline(order['patience'])
    with (directory / 'events').open('a', encoding='utf-8') as stream:
        writer = EventWriter(stream)
        result = runner.run(
            private_data_dir=str(run_directory),
            project_dir=order['directory'],
            playbook=order['playbook'],
            inventory=order['inventory'],
            limit=order['limit'],
            extravars=order['variables'],
            timeout=order['timeout'],
            quiet=True,
            settings={'pexpect_timeout': POLL_SECONDS, 'suppress_output_file': True},
            event_handler=writer.write_event,
            cancel_callback=lifeline.is_lost,
        )
        kill_descendants()
        writer.write_end(result.status)


if __name__ == '__main__':
    sys.exit(main(Path(sys.argv[1])))
