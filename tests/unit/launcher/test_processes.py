# SPDX-License-Identifier: Apache-2.0
"""Processes and all that they began, ended for certain."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from devstack.launcher.failure import LaunchFailed
from devstack.launcher.processes import Child, Group, read_record, write_record

# Begins a child of its own, says so, and waits.
_PARENT: Final = (
    'import subprocess, sys, time\n'
    'subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])\n'
    'print("both run", flush=True)\n'
    'time.sleep(600)\n'
)
_DEAF: Final = (
    'import signal, time\n'
    'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
    'print("deaf", flush=True)\n'
    'time.sleep(600)\n'
)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    made = Child('test', tmp_path / 'log')
    yield made
    if made.status is None:
        made.kill()


def start(child: Child, code: str, word: str) -> None:
    child.start([sys.executable, '-c', code])
    child.until(lambda: word in child.tail())


def test_what_a_child_began_ends_with_it(child: Child) -> None:
    start(child, _PARENT, 'both run')
    assert len(child.group.members()) == 2
    child.end()
    assert child.group.members() == []


def test_whoever_does_not_listen_is_killed(child: Child) -> None:
    start(child, _DEAF, 'deaf')
    assert child.end(patience=0) == -9
    assert child.group.members() == []


def test_a_kill_is_none_that_one_could_answer(child: Child) -> None:
    start(child, _PARENT, 'both run')
    child.kill()
    assert child.status == -9
    assert child.group.members() == []


def test_a_child_that_ends_by_itself_is_shown_by_its_log(child: Child) -> None:
    child.start([sys.executable, '-c', 'print("no licence"); raise SystemExit(3)'])
    with pytest.raises(LaunchFailed, match=r'(?s)no licence.*test ended by itself'):
        child.until(lambda: False)


def test_a_child_that_is_never_ready_is_not_waited_for_for_ever(child: Child) -> None:
    start(child, _PARENT, 'both run')
    with pytest.raises(LaunchFailed, match='not ready'):
        child.until(lambda: False, limit=0)


def test_a_child_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
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
    done = subprocess.run(
        [sys.executable, '-c', code, str(tmp_path / 'log'), _PARENT],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    pid, born = done.stdout.split()
    orphan = Group('orphan', int(pid), born)
    # The leader is told by the kernel; what it began is ended as by any other run.
    orphan.end()
    assert orphan.members() == []


def test_a_number_that_was_given_to_somebody_else_is_let_live(child: Child) -> None:
    start(child, _PARENT, 'both run')
    stranger = Group('test', child.group.pid, born='0')
    assert not stranger.ours
    stranger.end()
    assert len(child.group.members()) == 2


def test_another_run_finds_the_groups_by_the_record(
    child: Child, tmp_path: Path
) -> None:
    start(child, _PARENT, 'both run')
    record = tmp_path / 'running.json'
    assert read_record(record) == []
    write_record(record, [child.group])
    assert read_record(record) == [child.group]
