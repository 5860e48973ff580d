# SPDX-License-Identifier: Apache-2.0
"""Tests of the identity of an agent and of the lock of its state directory."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.agent.state.identity import StateLock, check_host, load_identity
from cyborg_lite.errors.hosts import ForeignState, StateLocked

_HOLDER: Final = """
import sys
from pathlib import Path
from cyborg_lite.agent.state.identity import StateLock
lock = StateLock(Path(sys.argv[1]))
lock.acquire()
print('locked', flush=True)
sys.stdin.read()
"""


@contextmanager
def _locked_by_process(directory: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, '-c', _HOLDER, str(directory)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == 'locked\n'
        yield process
        process.kill()


def test_identity_is_kept(tmp_path: Path) -> None:
    identity = load_identity(tmp_path / 'state')
    assert load_identity(tmp_path / 'state') == identity
    assert load_identity(tmp_path / 'reinstalled') != identity


def test_identity_of_copied_directory_differs(tmp_path: Path) -> None:
    identity = load_identity(tmp_path / 'state')
    shutil.copytree(tmp_path / 'state', tmp_path / 'copy')
    assert load_identity(tmp_path / 'copy') not in ('', identity)
    assert load_identity(tmp_path / 'state') == identity


def test_identity_damaged_file_is_replaced(tmp_path: Path) -> None:
    identity = load_identity(tmp_path)
    (tmp_path / 'identity.json').write_text('{"v": 1, "content": {"uuid": "x"}}')
    replaced = load_identity(tmp_path)
    assert replaced != identity
    assert load_identity(tmp_path) == replaced


def test_state_copied_from_other_host_is_refused(tmp_path: Path) -> None:
    check_host(tmp_path / 'state', 'compute-1')
    check_host(tmp_path / 'state', 'compute-1')
    shutil.copytree(tmp_path / 'state', tmp_path / 'copy')
    with pytest.raises(ForeignState, match='are of host compute-1, not of compute-2'):
        check_host(tmp_path / 'copy', 'compute-2')
    shutil.rmtree(tmp_path / 'copy')
    check_host(tmp_path / 'copy', 'compute-2')


def test_lock_of_living_process_is_refused(tmp_path: Path) -> None:
    lock = StateLock(tmp_path / 'state')
    with _locked_by_process(tmp_path / 'state') as process:
        with pytest.raises(StateLocked, match=str(tmp_path / 'state')):
            lock.acquire()
        process.kill()
        process.wait()
        lock.acquire()
    lock.release()


def test_lock_released_can_be_taken(tmp_path: Path) -> None:
    lock = StateLock(tmp_path)
    lock.acquire()
    lock.release()
    lock.release()
    with _locked_by_process(tmp_path):
        pass


def test_lock_without_directory_goes_on(tmp_path: Path) -> None:
    (tmp_path / 'file').touch()
    lock = StateLock(tmp_path / 'file' / 'state')
    lock.acquire()
    lock.release()
