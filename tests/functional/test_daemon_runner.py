# SPDX-License-Identifier: Apache-2.0
"""Tests of the daemon runner with real processes and signals."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_LIMIT = 60  # seconds until a hanging process is killed and its test fails


class RunningDaemon:
    """A daemon process and the lines that it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []

    def wait_for(self, pattern: str, times: int = 1) -> list[str]:
        """Read until ``times`` lines match, and return them."""
        assert self.process.stdout is not None
        matches: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line)
            if re.search(pattern, line):
                matches.append(line)
            if len(matches) == times:
                return matches
        raise AssertionError(f'{pattern} does not occur in:\n{"".join(self.lines)}')

    def wait(self) -> int:
        """Wait for the exit and return the exit status."""
        assert self.process.stdout is not None
        self.lines += self.process.stdout
        return self.process.wait(_LIMIT)


Start = Callable[..., RunningDaemon]


@pytest.fixture(params=['threading', 'eventlet'])
def backend(request: pytest.FixtureRequest) -> str:
    """Return the concurrency backend."""
    return str(request.param)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / 'daemon.conf'
    path.write_text(
        '[DEFAULT]\n'
        'transport_url = rabbit://joe:secret@broker:5672/cloud\n'
        'graceful_shutdown_timeout = 50\n'
    )
    return path


@pytest.fixture
def start(config: Path) -> Iterator[Start]:
    processes: list[subprocess.Popen[str]] = []

    def _start(backend: str, workers: int = 1, mode: str = 'normal') -> RunningDaemon:
        process = subprocess.Popen(
            [
                sys.executable,
                '-m',
                'tests.servers.scripted_daemon',
                str(config),
                str(workers),
                mode,
            ],
            cwd=ROOT,
            env={**os.environ, 'CYBORG_LITE_CONCURRENCY': backend},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        guard = threading.Timer(_LIMIT, _kill, (process,))
        guard.daemon = True
        guard.start()
        return RunningDaemon(process)

    yield _start
    for process in processes:
        _kill(process)
        process.communicate()


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def test_sigterm_calls_stop_then_wait(start: Start, backend: str) -> None:
    daemon = start(backend)
    daemon.wait_for('Ready')
    daemon.process.terminate()
    assert daemon.wait() == 0
    calls = [line.split()[0] for line in daemon.lines if f'of {backend}' in line]
    assert calls == ['start', 'stop', 'wait']


@pytest.mark.parametrize('workers', [1, 2])
def test_start_exempts_its_objects_from_collections(
    start: Start, backend: str, workers: int
) -> None:
    daemon = start(backend, workers=workers)
    daemon.wait_for('Ready', times=workers)
    daemon.process.terminate()
    daemon.wait()
    assert ''.join(daemon.lines).count('stop frozen=True') == workers


def test_start_logs_configuration_without_password(
    start: Start, config: Path, backend: str
) -> None:
    daemon = start(backend)
    (line,) = daemon.wait_for('talking-daemon .* on host')
    assert 'transport rabbit://broker:5672/cloud' in line
    assert f'concurrency {backend}' in line
    assert 'workers 1' in line
    assert str(config) in line
    daemon.process.terminate()
    daemon.wait()
    assert 'secret' not in ''.join(daemon.lines)


def test_sighup_reloads_mutable_options(
    start: Start, config: Path, backend: str
) -> None:
    daemon = start(backend)
    daemon.wait_for('Ready')
    config.write_text(f'{config.read_text()}debug = true\n')
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for('reload debug=True')
    daemon.process.terminate()
    assert daemon.wait() == 0


def test_sighup_invalid_file_keeps_daemon_running(
    start: Start, config: Path, backend: str
) -> None:
    daemon = start(backend)
    daemon.wait_for('Ready')
    config.write_text('no section\n')
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for('Cannot reload the configuration')
    daemon.process.terminate()
    assert daemon.wait() == 0


def test_sigterm_unfinished_work_exits_after_timeout(
    start: Start, config: Path, backend: str
) -> None:
    text = config.read_text().replace('timeout = 50', 'timeout = 1')
    config.write_text(text)
    daemon = start(backend, mode='hang')
    daemon.wait_for('Ready')
    daemon.process.terminate()
    assert daemon.wait() == 1
    assert 'Not stopped within 1 s' in ''.join(daemon.lines)


def test_sigterm_during_blocked_start_exits_with_0(start: Start, backend: str) -> None:
    """The start may wait for an unreachable message bus."""
    daemon = start(backend, mode='stuck')
    daemon.wait_for('start in')
    daemon.process.terminate()
    assert daemon.wait() == 0
    output = ''.join(daemon.lines)
    assert 'Received SIGTERM during the start' in output
    assert 'Ready' not in output
    assert 'Traceback' not in output


def test_sigterm_during_slow_start_stops_daemon(start: Start, backend: str) -> None:
    daemon = start(backend, mode='slow')
    daemon.wait_for('start in')
    daemon.process.terminate()
    assert daemon.wait() == 0
    assert [line.split()[0] for line in daemon.lines if f'of {backend}' in line][
        -1
    ] == ('wait')


def test_sighup_during_start_reloads_afterwards(
    start: Start, config: Path, backend: str
) -> None:
    daemon = start(backend, mode='signalled')
    daemon.wait_for('Ready')
    daemon.wait_for('reload')
    daemon.process.terminate()
    assert daemon.wait() == 0


def test_start_failure_logs_reason_without_traceback(
    start: Start, backend: str
) -> None:
    daemon = start(backend, mode='refuse')
    assert daemon.wait() == 1
    output = ''.join(daemon.lines)
    assert 'Cannot start: It is Monday. Correct the configuration,' in output
    assert 'Traceback' not in output


@pytest.mark.parametrize('workers', [1, 2])
def test_unusable_lock_path_delays_ready(
    start: Start, backend: str, config: Path, workers: int
) -> None:
    """Otherwise the daemon would say that it is ready, and fail each call."""
    file = config.with_name('file')
    file.touch()
    text = (
        '[oslo_messaging_rabbit]\nuse_queue_manager = true\n'
        f'[oslo_concurrency]\nlock_path = {file}/locks\n'
    )
    config.write_text(config.read_text() + text)
    daemon = start(backend, workers=workers)
    lines = daemon.wait_for('Not ready: .* lock_path: the daemon cannot', workers)
    assert all('Not a directory' in line for line in lines)
    assert 'Ready.' not in ''.join(daemon.lines)
    file.unlink()
    daemon.wait_for('Ready', times=workers)
    daemon.process.terminate()
    assert daemon.wait() == 0


def test_workers_each_run_their_own_daemon(start: Start, backend: str) -> None:
    daemon = start(backend, workers=2)
    daemon.wait_for('Ready', times=2)
    daemon.process.terminate()
    assert daemon.wait() == 0
    output = ''.join(daemon.lines)
    started = set(re.findall(r'start in (\d+)', output))
    assert len(started) == 2
    assert str(daemon.process.pid) not in started
    assert set(re.findall(r'wait in (\d+)', output)) == started


def list_starts(daemon: RunningDaemon) -> list[int]:
    return [int(pid) for pid in re.findall(r'start in (\d+)', ''.join(daemon.lines))]


def test_killed_worker_is_replaced(start: Start, backend: str) -> None:
    daemon = start(backend, workers=2)
    daemon.wait_for('Ready', times=2)
    killed = list_starts(daemon)[0]
    os.kill(killed, signal.SIGKILL)
    (line,) = daemon.wait_for('Workers have ended')
    assert f'{killed}: -9' in line
    daemon.wait_for('Ready')
    daemon.process.terminate()
    assert daemon.wait() == 0
    assert len(set(list_starts(daemon))) == 3


def test_workers_end_with_killed_parent(start: Start, backend: str) -> None:
    daemon = start(backend, workers=2)
    daemon.wait_for('Ready', times=2)
    daemon.process.kill()
    assert daemon.wait() == -signal.SIGKILL  # at the end of the workers' output
    assert ''.join(daemon.lines).count('wait in') == 2


def test_sighup_reloads_each_worker(start: Start, config: Path, backend: str) -> None:
    daemon = start(backend, workers=2)
    daemon.wait_for('Ready', times=2)
    config.write_text(f'{config.read_text()}debug = true\n')
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for('reload debug=True', times=2)
    daemon.process.terminate()
    assert daemon.wait() == 0


def test_worker_that_cannot_start_lets_parent_stop(start: Start, backend: str) -> None:
    daemon = start(backend, workers=2, mode='refuse')
    daemon.wait_for('Workers have ended')
    daemon.process.terminate()
    daemon.wait()
    assert 'Cannot start: It is Monday.' in ''.join(daemon.lines)


def test_sigusr2_prints_stacks_and_continues(start: Start, backend: str) -> None:
    daemon = start(backend)
    daemon.wait_for('Ready')
    daemon.process.send_signal(signal.SIGUSR2)
    daemon.wait_for('most recent call first')
    daemon.process.terminate()
    assert daemon.wait() == 0
