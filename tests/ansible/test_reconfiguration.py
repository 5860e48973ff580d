# SPDX-License-Identifier: Apache-2.0
"""Playbooks of hardware sets, run by the real ansible-runner on a scratch root."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite.clients.playbooks import PlaybookOrder, PlaybookRunner, check_installed
from cyborg_lite.errors.devices import ReconfigurationDelayed
from tests.ansible.collection import ROOT
from tests.support.processes import is_running

_PATIENCE: Final = 60.0  # seconds
_WAIT: Final = 60.0  # seconds until a killed playbook has ended
_PLAYBOOK: Final = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: Write the options
      ansible.builtin.copy:
        content: "options gpu count={{ count }}\\n"
        dest: "{{ root }}/gpu.conf"
        mode: "0644"
    - name: Read the licence
      ansible.builtin.command: echo token-of-licence
      changed_when: true
      no_log: true
    - name: Check the result
      ansible.builtin.fail:
        msg: "Cannot reach db://joe:hunter2@server with password=hunter2"
      when: count > 8
    - name: Note the process
      ansible.builtin.shell: >-
        echo $$ > {{ root }}/started; sleep 120; touch {{ root }}/end
      when: count == 0
"""
_KILLED: Final = """\
import json, sys, threading
from cyborg_lite.clients.playbooks import PlaybookOrder, PlaybookRunner

order = PlaybookOrder(**json.loads(sys.argv[1]))
PlaybookRunner(60.0, threading.Event()).run(order, lambda lines: True)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Directory of the inventory and the playbook, and of the files that it writes."""
    host = {
        'ansible_connection': 'local',
        'ansible_python_interpreter': sys.executable,
        'root': str(tmp_path),
    }
    inventory = {'all': {'hosts': {'compute-1': host}}}
    (tmp_path / 'hosts.json').write_text(json.dumps(inventory), encoding='utf-8')
    (tmp_path / 'setup.yml').write_text(_PLAYBOOK, encoding='utf-8')
    return tmp_path


# Any: variables of Ansible.
def order(root: Path, limit: str = 'compute-1', **variables: Any) -> PlaybookOrder:
    return PlaybookOrder(str(root), 'hosts.json', 'setup.yml', limit, variables, 300)


def run(root: Path, limit: str = 'compute-1', **variables: Any) -> tuple[str, str]:
    """Run the playbook; return why it failed, and its log."""
    lines: list[str] = []

    def confirm(arguments: Sequence[str]) -> bool:
        lines.extend(arguments)
        return True

    runner = PlaybookRunner(_PATIENCE, threading.Event())
    result = runner.run(order(root, limit, **variables), confirm)
    return result.reason, '\n'.join(lines)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_ansible_is_installed() -> None:
    check_installed()


def test_playbook_changes_files_and_logs_tasks(root: Path) -> None:
    assert run(root, count=4) == (
        '',
        'Write the options: changed\nRead the licence: ok',
    )
    assert (root / 'gpu.conf').read_text() == 'options gpu count=4\n'


def test_playbook_failure_has_no_secret(root: Path) -> None:
    reason, log = run(root, count=9)
    assert reason.startswith('Check the result: ')
    assert 'Cannot reach' in reason
    for secret in ('hunter2', 'token-of-licence'):
        assert secret not in reason + log


def test_playbook_unknown_host_fails(root: Path) -> None:
    reason, log = run(root, 'compute-2', count=1)
    assert 'no hosts to target' in reason
    assert (log, (root / 'gpu.conf').exists()) == ('', False)


@pytest.mark.parametrize('cause', ['conductor killed', 'job lost'])
def test_playbook_ends_with_its_job(root: Path, cause: str) -> None:
    text = json.dumps(
        {
            'directory': str(root),
            'inventory': 'hosts.json',
            'playbook': 'setup.yml',
            'limit': 'compute-1',
            'variables': {'count': 0},
            'timeout': 300,
        }
    )
    started = root / 'started'
    if cause == 'conductor killed':
        conductor = subprocess.Popen(
            [sys.executable, '-c', textwrap.dedent(_KILLED), text],
            env={**os.environ, 'PYTHONPATH': str(ROOT)},
        )
        wait_until(lambda: started.exists() and bool(started.read_text()))
        conductor.send_signal(signal.SIGKILL)
        conductor.wait()
    else:

        def confirm(_lines: Sequence[str]) -> bool:
            if started.exists() and started.read_text():
                raise ReconfigurationDelayed(reason='Another conductor has the job.')
            return True

        runner = PlaybookRunner(3.0, threading.Event())
        with pytest.raises(ReconfigurationDelayed, match='Another conductor'):
            runner.run(order(root, count=0), confirm)
    pid = int(started.read_text())
    wait_until(lambda: not is_running(pid))
    assert not (root / 'end').exists()


def test_playbook_ends_with_killed_process(root: Path) -> None:
    started = root / 'started'
    killed: list[int] = []

    def confirm(_lines: Sequence[str]) -> bool:
        if not killed and started.exists() and started.read_text():
            killed.extend(list_processes(os.getpid()))
            os.kill(killed[0], signal.SIGKILL)
        return True

    with pytest.raises(ReconfigurationDelayed, match='was killed'):
        PlaybookRunner(3.0, threading.Event()).run(order(root, count=0), confirm)
    # Another attempt may begin now.
    assert not is_running(int(started.read_text()))
    assert not (root / 'end').exists()


def list_processes(parent: int) -> list[int]:
    """Return the children of a process that run the program of a playbook."""
    text = Path(f'/proc/{parent}/task/{parent}/children').read_text(encoding='utf-8')
    return [
        int(pid)
        for pid in text.split()
        if b'playbook_process.py' in Path(f'/proc/{pid}/cmdline').read_bytes()
    ]
