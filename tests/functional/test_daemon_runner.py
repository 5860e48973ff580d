# SPDX-License-Identifier: Apache-2.0
"""Tests of the daemon runner with real processes and signals."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devstack.launcher.processes import Child
from tests.servers import scripted_daemon
from tests.servers.forked_child import ForkedChild
from tests.servers.stack import ROOT

_LIMIT = 60  # seconds after which the wait for an exit fails


class RunningDaemon:
    """A daemon process and the lines that it has printed."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._read = 0  # lines up to the last one that a test has waited for

    @property
    def output(self) -> str:
        return self.child.log.read_text()

    def wait_for(self, pattern: str, times: int = 1) -> list[str]:
        """Wait until ``times`` further lines match, and return them."""

        def find() -> list[tuple[int, str]]:
            lines = [*enumerate(self.output.splitlines(), 1)][self._read :]
            return [item for item in lines if re.search(pattern, item[1])][:times]

        self.child.until(lambda: len(find()) == times)
        matches = find()
        self._read = matches[-1][0]
        return [line for _, line in matches]

    def wait(self) -> int | None:
        """Wait for the exit of all processes and return the exit status."""
        deadline = time.monotonic() + _LIMIT
        while self.child.status is None or self.child.group.members():
            assert time.monotonic() < deadline, self.output
            time.sleep(0.01)
        return self.child.status

    def terminate(self) -> int | None:
        """Send SIGTERM, wait for the exit and return the exit status."""
        self.child.signal(signal.SIGTERM)
        return self.wait()


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
def start(config: Path, backend: str) -> Iterator[Start]:
    kind = ForkedChild if backend == 'threading' else Child
    child = kind('talking-daemon', config.with_name('log'))

    def _start(workers: int = 1, mode: str = 'normal') -> RunningDaemon:
        command = [sys.executable, '-m', scripted_daemon.__name__, str(config)]
        environment = {'CYBORG_LITE_CONCURRENCY': backend, 'PYTHONPATH': str(ROOT)}
        child.start([*command, str(workers), mode], environment)
        return RunningDaemon(child)

    yield _start
    child.kill()


def test_sigterm_calls_stop_then_wait(start: Start, backend: str) -> None:
    daemon = start()
    daemon.wait_for('Ready')
    assert daemon.terminate() == 0
    calls = re.findall(rf'^(\w+) .*of {backend}$', daemon.output, re.MULTILINE)
    assert calls == ['start', 'stop', 'wait']


@pytest.mark.parametrize('workers', [1, 2])
def test_start_exempts_its_objects_from_collections(start: Start, workers: int) -> None:
    daemon = start(workers=workers)
    daemon.wait_for('Ready', times=workers)
    daemon.terminate()
    assert daemon.output.count('stop frozen=True') == workers


def test_start_logs_configuration_without_password(
    start: Start, config: Path, backend: str
) -> None:
    daemon = start()
    (line,) = daemon.wait_for('talking-daemon .* on host')
    assert 'transport rabbit://broker:5672/cloud' in line
    assert f'concurrency {backend}' in line
    assert 'workers 1' in line
    assert str(config) in line
    daemon.terminate()
    assert 'secret' not in daemon.output


def test_sighup_reloads_mutable_options(start: Start, config: Path) -> None:
    daemon = start()
    daemon.wait_for('Ready')
    config.write_text(f'{config.read_text()}debug = true\n')
    daemon.child.signal(signal.SIGHUP)
    daemon.wait_for('reload debug=True')
    assert daemon.terminate() == 0


def test_sighup_invalid_file_keeps_daemon_running(start: Start, config: Path) -> None:
    daemon = start()
    daemon.wait_for('Ready')
    config.write_text('no section\n')
    daemon.child.signal(signal.SIGHUP)
    daemon.wait_for('Cannot reload the configuration')
    assert daemon.terminate() == 0


def test_sigterm_unfinished_work_exits_after_timeout(
    start: Start, config: Path
) -> None:
    text = config.read_text().replace('timeout = 50', 'timeout = 1')
    config.write_text(text)
    daemon = start(mode='hang')
    daemon.wait_for('Ready')
    assert daemon.terminate() == 1
    assert 'Not stopped within 1 s' in daemon.output


def test_sigterm_during_blocked_start_exits_with_0(start: Start) -> None:
    """The start may wait for an unreachable message bus."""
    daemon = start(mode='stuck')
    daemon.wait_for('start in')
    assert daemon.terminate() == 0
    output = daemon.output
    assert 'Received SIGTERM during the start' in output
    assert 'Ready' not in output
    assert 'Traceback' not in output


def test_sigterm_during_slow_start_stops_daemon(start: Start) -> None:
    daemon = start(mode='slow')
    daemon.wait_for('start in')
    assert daemon.terminate() == 0
    assert re.findall(r'^(\w+) in', daemon.output, re.MULTILINE)[-1] == 'wait'


def test_sighup_during_start_reloads_afterwards(start: Start, config: Path) -> None:
    daemon = start(mode='signalled')
    daemon.wait_for('Ready')
    daemon.wait_for('reload')
    assert daemon.terminate() == 0


def test_start_failure_logs_reason_without_traceback(start: Start) -> None:
    daemon = start(mode='refuse')
    assert daemon.wait() == 1
    output = daemon.output
    assert 'Cannot start: It is Monday. Correct the configuration,' in output
    assert 'Traceback' not in output


@pytest.mark.parametrize('workers', [1, 2])
def test_unusable_lock_path_delays_ready(
    start: Start, config: Path, workers: int
) -> None:
    """Otherwise the daemon would say that it is ready, and fail each call."""
    file = config.with_name('file')
    file.touch()
    text = (
        '[oslo_messaging_rabbit]\nuse_queue_manager = true\n'
        f'[oslo_concurrency]\nlock_path = {file}/locks\n'
    )
    config.write_text(config.read_text() + text)
    daemon = start(workers=workers)
    lines = daemon.wait_for('Not ready: .* lock_path: the daemon cannot', workers)
    assert all('Not a directory' in line for line in lines)
    assert 'Ready.' not in daemon.output
    file.unlink()
    daemon.wait_for('Ready', times=workers)
    assert daemon.terminate() == 0


def test_workers_each_run_their_own_daemon(start: Start) -> None:
    daemon = start(workers=2)
    daemon.wait_for('Ready', times=2)
    assert daemon.terminate() == 0
    output = daemon.output
    started = set(re.findall(r'start in (\d+)', output))
    assert len(started) == 2
    assert str(daemon.child.group.pid) not in started
    assert set(re.findall(r'wait in (\d+)', output)) == started


def list_starts(daemon: RunningDaemon) -> list[int]:
    return [int(pid) for pid in re.findall(r'start in (\d+)', daemon.output)]


def test_killed_worker_is_replaced(start: Start) -> None:
    daemon = start(workers=2)
    daemon.wait_for('Ready', times=2)
    killed = list_starts(daemon)[0]
    os.kill(killed, signal.SIGKILL)
    (line,) = daemon.wait_for('Workers have ended')
    assert f'{killed}: -9' in line
    daemon.wait_for('Ready')
    assert daemon.terminate() == 0
    assert len(set(list_starts(daemon))) == 3


def test_workers_end_with_killed_parent(start: Start) -> None:
    daemon = start(workers=2)
    daemon.wait_for('Ready', times=2)
    daemon.child.signal(signal.SIGKILL)
    assert daemon.wait() == -signal.SIGKILL  # at the end of the workers' output
    assert daemon.output.count('wait in') == 2


def test_sighup_reloads_each_worker(start: Start, config: Path) -> None:
    daemon = start(workers=2)
    daemon.wait_for('Ready', times=2)
    config.write_text(f'{config.read_text()}debug = true\n')
    daemon.child.signal(signal.SIGHUP)
    daemon.wait_for('reload debug=True', times=2)
    assert daemon.terminate() == 0


def test_worker_that_cannot_start_lets_parent_stop(start: Start) -> None:
    daemon = start(workers=2, mode='refuse')
    daemon.wait_for('Workers have ended')
    daemon.terminate()
    assert 'Cannot start: It is Monday.' in daemon.output


def test_sigusr2_prints_stacks_and_continues(start: Start) -> None:
    daemon = start()
    daemon.wait_for('Ready')
    daemon.child.signal(signal.SIGUSR2)
    daemon.wait_for('most recent call first')
    assert daemon.terminate() == 0
