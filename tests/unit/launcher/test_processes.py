# SPDX-License-Identifier: Apache-2.0
"""Tests of starting and stopping process groups."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from devstack.launcher.failure import LaunchFailed
from devstack.launcher.processes import Child, Group, read_record, write_record

# Start a child process, print a line and wait.
_PARENT: Final = (
    'import subprocess, sys, time\n'
    'subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])\n'
    'print("both run", flush=True)\n'
    'time.sleep(600)\n'
)
_IGNORES_SIGTERM: Final = (
    'import signal, time\n'
    'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
    'print("ready", flush=True)\n'
    'time.sleep(600)\n'
)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child('test', tmp_path / 'log')
    yield child
    if child.status is None:
        child.kill()


def start(child: Child, code: str, word: str) -> None:
    child.start([sys.executable, '-c', code])
    child.until(lambda: word in child.tail())


def test_end_stops_whole_group(child: Child) -> None:
    start(child, _PARENT, 'both run')
    assert len(child.group.members()) == 2
    child.end()
    assert child.group.members() == []


def test_end_after_patience_kills(child: Child) -> None:
    start(child, _IGNORES_SIGTERM, 'ready')
    assert child.end(patience=0) == -9
    assert child.group.members() == []


def test_kill_kills_whole_group(child: Child) -> None:
    start(child, _PARENT, 'both run')
    child.kill()
    assert child.status == -9
    assert child.group.members() == []


def test_until_exited_child_raises_with_log(child: Child) -> None:
    child.start([sys.executable, '-c', 'print("no licence"); raise SystemExit(3)'])
    with pytest.raises(LaunchFailed, match=r'(?s)no licence.*test exited unexpectedly'):
        child.until(lambda: False)


def test_until_timeout_raises(child: Child) -> None:
    start(child, _PARENT, 'both run')
    with pytest.raises(LaunchFailed, match='not ready'):
        child.until(lambda: False, limit=0)


def test_child_stops_when_parent_is_killed(tmp_path: Path) -> None:
    code = (
        'import os, sys\n'
        'from pathlib import Path\n'
        'from devstack.launcher.processes import Child\n'
        'child = Child("orphan", Path(sys.argv[1]))\n'
        'child.start([sys.executable, "-c", sys.argv[2]])\n'
        'child.until(lambda: "both run" in child.tail())\n'
        'print(child.group.pid, child.group.born, flush=True)\n'
        'os.kill(os.getpid(), 9)\n'
    )
    parent = subprocess.run(
        [sys.executable, '-c', code, str(tmp_path / 'log'), _PARENT],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    pid, born = parent.stdout.split()
    orphan = Group('orphan', int(pid), born)
    # The kernel stops the leader. A later run stops the remaining processes.
    orphan.end()
    assert orphan.members() == []


def test_end_reused_pid_stops_nothing(child: Child) -> None:
    start(child, _PARENT, 'both run')
    group = Group('test', child.group.pid, born='0')
    assert not group.is_valid
    group.end()
    assert len(child.group.members()) == 2


def test_record_is_read_back(child: Child, tmp_path: Path) -> None:
    start(child, _PARENT, 'both run')
    record = tmp_path / 'running.json'
    assert read_record(record) == []
    write_record(record, [child.group])
    assert read_record(record) == [child.group]
