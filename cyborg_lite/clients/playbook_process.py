# SPDX-License-Identifier: Apache-2.0
"""The process that runs one playbook by ansible-runner, for ``clients/playbooks.py``.

The conductor starts this file with the path of a directory. The directory has
``order.json``, and receives the results as JSON lines in ``events``. The conductor
writes to the standard input while it has the lease of the job. The playbook is killed
if the input ends or receives nothing: another conductor may then run the job.

All processes of a run inherit the environment variable ``RUN``, by which the conductor
finds what a killed process leaves.
"""

import contextlib
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

RUN: Final = 'CYBORG_LITE_PLAYBOOK_RUN'
"""Environment variable with the directory of a run."""

POLL_SECONDS: Final = 1
KILL_SECONDS: Final = 15.0  # until a process that SIGKILL does not end is left
MAX_TEXT: Final = 500  # characters of a message of Ansible
_CREDENTIALS: Final = re.compile(r'(?<=://)[^/@\s]+@')
_ERROR: Final = re.compile(r'^(?:ERROR!|\[ERROR\]:)\s*(.+)$', re.MULTILINE)
_ESCAPES: Final = re.compile(r'\x1b\[[0-9;]*m')
_RESULTS: Final = {
    'runner_on_ok': 'ok',
    'runner_on_failed': 'FAILED',
    'runner_on_unreachable': 'UNREACHABLE',
}


class Lifeline:
    """The standard input, by which the conductor keeps the playbook alive."""

    def __init__(self, patience: float) -> None:
        # Seconds without a byte after which the conductor is lost.
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


def kill_run(directory: Path) -> bool:
    """Kill all other processes of a run; return False if one of them does not end.

    ansible-runner kills the process group of the playbook. The workers of Ansible 2.19
    are in sessions of their own, so their tasks would go on.
    """
    mark = f'{RUN}={directory}'.encode()
    deadline = time.monotonic() + KILL_SECONDS
    while pids := _list_processes(mark):
        if time.monotonic() > deadline:
            return False
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return True


def _list_processes(mark: bytes) -> list[int]:
    """Return the other processes with an environment variable and its value."""
    pids = []
    for path in Path('/proc').glob('[0-9]*/environ'):
        # The environment of other users, which cannot be read, has no mark.
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b'\0'):
                pids.append(int(path.parent.name))
    return [pid for pid in pids if pid != os.getpid()]


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
        kill_run(directory)
        writer.write_end(result.status)


if __name__ == '__main__':
    run_playbook(Path(sys.argv[1]))
