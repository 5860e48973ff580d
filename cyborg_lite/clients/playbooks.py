# SPDX-License-Identifier: Apache-2.0
"""Playbooks of Ansible, each run by ansible-runner in a process of its own.

The process keeps Ansible out of the conductor, and ends with the conductor: see
``playbook_process.py``. The conductor kills what a killed process leaves. The files of
a run are in a private directory, which is deleted after the run.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from oslo_log import log

from cyborg_lite.clients.playbook_process import RUN, kill_run
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.devices import ReconfigurationDelayed

LOG = log.getLogger(__name__)

PROGRAM: Final = 'ansible-playbook'
SUCCESSFUL: Final = 'successful'
_INTERVAL: Final = 0.5  # seconds between two checks of the process
_STOP_TIMEOUT: Final = 15.0  # seconds in which the process kills the playbook
_PASSED: Final = ('HOME', 'LANG', 'LC_ALL', 'SSH_AUTH_SOCK', 'USER')
_OF_ANSIBLE: Final = 'ANSIBLE_'


@dataclass(frozen=True, slots=True)
class PlaybookOrder:
    """A playbook to run on one host."""

    directory: str  # absolute; of ansible.cfg and of relative playbooks
    inventory: str  # path, absolute or relative to the directory
    playbook: str
    limit: str  # name of the host in the inventory
    variables: Mapping[str, Any]  # JSON values
    timeout: int  # seconds


@dataclass(frozen=True, slots=True)
class PlaybookResult:
    """The outcome of a playbook."""

    status: str  # of ansible-runner
    failure: str = ''  # first failure, without secrets

    @property
    def reason(self) -> str:
        """Return why the playbook did not succeed; empty: it did."""
        if self.status == SUCCESSFUL:
            return ''
        if self.status == 'timeout':
            return 'It exceeded its timeout and was killed.'
        return self.failure or f'Ansible ended with status {self.status}.'


def check_installed() -> None:
    """Check that ansible-runner and Ansible are installed.

    :raises ConfigurationError: they are not
    """
    has_runner = importlib.util.find_spec('ansible_runner') is not None
    if not has_runner or shutil.which(PROGRAM, path=_build_path()) is None:
        raise ConfigurationError(
            reason='[conductor] hardware_sets needs ansible-runner and ansible-core. '
            'Install cyborg-lite[ansible].'
        )


class PlaybookRunner:
    """Runs playbooks while the caller confirms that it may."""

    def __init__(self, patience: float, stopping: threading.Event) -> None:
        # Seconds without a confirmation after which a playbook is killed.
        self._patience = patience
        self._stopping = stopping  # set when the conductor stops

    def run(
        self, order: PlaybookOrder, confirm: Callable[[Sequence[str]], bool]
    ) -> PlaybookResult:
        """Run a playbook and return how it ended.

        :param confirm: receives one line per task that has ended; returns False if it
            cannot tell now whether the playbook may go on. An error kills the playbook.
        :raises ReconfigurationDelayed: the playbook was killed before its end
        """
        with tempfile.TemporaryDirectory(prefix='cyborg-lite-') as name:
            directory = Path(name)
            content = {**asdict(order), 'patience': self._patience}
            content['inventory'] = str(Path(order.directory, order.inventory))
            order_file = directory / 'order.json'
            order_file.write_text(json.dumps(content), encoding='utf-8')
            with _start_process(directory) as process:
                return self._follow(process, directory / 'events', confirm)

    def _follow(
        self,
        process: subprocess.Popen[bytes],
        events: Path,
        confirm: Callable[[Sequence[str]], bool],
    ) -> PlaybookResult:
        reader = _EventReader(events)
        confirmed_at = time.monotonic()
        while True:
            has_ended = process.poll() is not None
            lines = reader.read_lines()
            is_due = time.monotonic() - confirmed_at >= self._patience / 3
            if (lines or is_due) and confirm(lines):
                confirmed_at = time.monotonic()
                _feed(process)
            if has_ended:
                if reader.result is None or reader.result.status == 'canceled':
                    status = process.returncode
                    LOG.warning('A playbook was killed; exit status %d', status)
                    raise ReconfigurationDelayed(reason='Its playbook was killed.')
                return reader.result
            if self._stopping.wait(_INTERVAL):
                raise ReconfigurationDelayed(reason='The conductor stops.')


class _EventReader:
    """Reads the lines that the process has written since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.result: PlaybookResult | None = None  # None: not ended

    def read_lines(self) -> list[str]:
        """Return the lines of the log."""
        if not self._path.exists():
            return []
        with self._path.open('rb') as stream:
            stream.seek(self._offset)
            content = stream.read()
        complete = content[: content.rfind(b'\n') + 1]
        self._offset += len(complete)
        lines = []
        for text in complete.splitlines():
            event = json.loads(text)
            if 'line' in event:
                lines.append(event['line'])
            else:
                self.result = PlaybookResult(event['status'], event['failure'])
        return lines


@contextmanager
def _start_process(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = Path(__file__).with_name('playbook_process.py')
    # -P: the directory of the program is no place to import from.
    command = [sys.executable, '-P', str(program), str(directory)]
    with (directory / 'output').open('wb') as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=_list_variables(directory),
            start_new_session=True,
            bufsize=0,  # a close must not write to a process that was killed
        )
    try:
        yield process
    finally:
        assert process.stdin is not None  # a pipe, as opened above
        process.stdin.close()
        try:
            process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if not kill_run(directory):
            LOG.error('A playbook was not killed')


def _feed(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None  # a pipe, see _start_process
    try:
        process.stdin.write(b'.')
    except BrokenPipeError:
        LOG.debug('The process of a playbook has ended')


def _list_variables(directory: Path) -> dict[str, str]:
    """Return the environment of a run: nothing of the conductor but the basics."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED or name.startswith(_OF_ANSIBLE)
    }
    return {
        **variables,
        RUN: str(directory),
        'PATH': _build_path(),
        'ANSIBLE_LOCAL_TEMP': str(directory / 'local'),
        'ANSIBLE_NOCOLOR': '1',
        'PYTHONDONTWRITEBYTECODE': '1',
    }


def _build_path() -> str:
    """Return the search path, with the programs of this Python first."""
    directory = str(Path(sys.executable).parent)
    return os.pathsep.join((directory, os.environ.get('PATH', os.defpath)))
