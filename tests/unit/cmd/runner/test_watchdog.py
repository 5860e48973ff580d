# SPDX-License-Identifier: Apache-2.0
"""Tests of the notifications of the watchdog, with real processes and sockets."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.cmd.runner.watchdog import Watchdog, list_ended_threads

ROOT = Path(__file__).parents[4]
_LIMIT = 60  # seconds


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """Yield the socket of systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / 'notify'))
        receiver.settimeout(_LIMIT)
        yield receiver


def start_daemon(
    tmp_path: Path, mode: str, workers: int = 1
) -> 'subprocess.Popen[str]':
    config = tmp_path / 'daemon.conf'
    config.write_text('[DEFAULT]\ntransport_url = local://\n')
    module = 'tests.servers.scripted_daemon'
    # systemd names the main process, which is the parent of several workers.
    command = ['sh', '-c', 'WATCHDOG_PID=$$ exec "$@"', 'sh', sys.executable, '-m']
    return subprocess.Popen(
        [*command, module, str(config), str(workers), mode],
        cwd=ROOT,
        env={
            **os.environ,
            'NOTIFY_SOCKET': str(tmp_path / 'notify'),
            'WATCHDOG_USEC': '300000',
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize('workers', [1, 2])
def test_daemon_notifies_until_its_end(
    systemd: socket.socket, tmp_path: Path, workers: int
) -> None:
    process = start_daemon(tmp_path, 'normal', workers)
    try:
        messages = [systemd.recv(100) for _ in range(4)]
        assert messages.count(b'READY=1\nSTATUS=Ready.') in range(1, workers + 1)
        assert b'WATCHDOG=1' in messages
    finally:
        process.terminate()
        process.communicate(timeout=_LIMIT)
    assert process.returncode == 0


def test_daemon_with_ended_thread_exits(systemd: socket.socket, tmp_path: Path) -> None:
    process = start_daemon(tmp_path, 'thread-ends')
    output, _ = process.communicate(timeout=_LIMIT)
    assert process.returncode == 1
    assert 'Threads have ended: worker. Exiting.' in output


@pytest.mark.parametrize(
    ('environment', 'is_expected'),
    [
        ({}, False),
        ({'NOTIFY_SOCKET': '/run/s'}, False),
        ({'NOTIFY_SOCKET': '/run/s', 'WATCHDOG_USEC': '0'}, False),
        ({'WATCHDOG_USEC': '9'}, False),
        ({'NOTIFY_SOCKET': '@name', 'WATCHDOG_USEC': '60000000'}, True),
    ],
)
def test_from_environment_of_this_process(
    environment: dict[str, str], is_expected: bool
) -> None:
    own, foreign = {'WATCHDOG_PID': str(os.getpid())}, {'WATCHDOG_PID': '1'}
    assert Watchdog.from_environment(environment | own).is_expected is is_expected
    assert not Watchdog.from_environment(environment | foreign).is_expected


def test_list_ended_threads_ignores_running_threads() -> None:
    class Daemon:
        def list_threads(self) -> list[threading.Thread]:
            return [threading.current_thread(), thread]

    thread = threading.Thread(name='ended')
    assert list_ended_threads(Daemon()) == ['ended']
    assert list_ended_threads(object()) == []
