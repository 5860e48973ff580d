# SPDX-License-Identifier: Apache-2.0
"""The runner of daemons, with real processes and real signals."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BACKENDS = ('threading', 'eventlet')

_LIMIT = 60  # seconds until a process that hangs is killed, and its test fails


class Conversation:
    """A running process and what it has said so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []

    def until(self, pattern: str, times: int = 1) -> list[str]:
        """Read on until so many lines match; those lines."""
        assert self.process.stdout is not None
        found: list[str] = []
        for line in self.process.stdout:
            self.said.append(line)
            if re.search(pattern, line):
                found.append(line)
            if len(found) == times:
                return found
        raise AssertionError(f'{pattern} was not said in:\n{"".join(self.said)}')

    def end(self) -> int:
        """Wait for its end; the exit status."""
        assert self.process.stdout is not None
        self.said += self.process.stdout
        return self.process.wait(_LIMIT)


Start = Callable[..., Conversation]


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
    started: list[subprocess.Popen[str]] = []

    def _start(backend: str, workers: int = 1, mood: str = 'well') -> Conversation:
        process = subprocess.Popen(
            [
                sys.executable,
                '-m',
                'tests.fakes.talking_daemon',
                str(config),
                str(workers),
                mood,
            ],
            cwd=ROOT,
            env={**os.environ, 'CYBORG_LITE_CONCURRENCY': backend},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        guard = threading.Timer(_LIMIT, _kill, (process,))
        guard.daemon = True
        guard.start()
        return Conversation(process)

    yield _start
    for process in started:
        _kill(process)
        process.communicate()


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize('backend', BACKENDS)
def test_sigterm_stops_and_then_waits_for_what_is_in_hand(
    start: Start, backend: str
) -> None:
    talk = start(backend)
    talk.until('Ready')
    talk.process.terminate()
    assert talk.end() == 0
    calls = [line.split()[0] for line in talk.said if f'of {backend}' in line]
    assert calls == ['start', 'stop', 'wait']


def test_it_says_what_it_is_and_shows_no_password(start: Start, config: Path) -> None:
    talk = start('threading')
    (line,) = talk.until('talking-daemon .* on host')
    assert 'transport rabbit://broker:5672/cloud' in line
    assert 'concurrency threading' in line
    assert 'workers 1' in line
    assert str(config) in line
    talk.process.terminate()
    talk.end()
    assert 'secret' not in ''.join(talk.said)


@pytest.mark.parametrize('backend', BACKENDS)
def test_sighup_reloads_what_may_change(
    start: Start, config: Path, backend: str
) -> None:
    talk = start(backend)
    talk.until('Ready')
    config.write_text(f'{config.read_text()}debug = true\n')
    talk.process.send_signal(signal.SIGHUP)
    talk.until('reload debug=True')
    talk.process.terminate()
    assert talk.end() == 0


def test_a_broken_file_is_not_loaded_and_ends_nothing(
    start: Start, config: Path
) -> None:
    talk = start('threading')
    talk.until('Ready')
    config.write_text('no section\n')
    talk.process.send_signal(signal.SIGHUP)
    talk.until('The configuration is not reloaded')
    talk.process.terminate()
    assert talk.end() == 0


@pytest.mark.parametrize('backend', BACKENDS)
def test_work_that_does_not_end_is_cut_off_at_the_limit(
    start: Start, config: Path, backend: str
) -> None:
    text = config.read_text().replace('timeout = 50', 'timeout = 1')
    config.write_text(text)
    talk = start(backend, mood='hang')
    talk.until('Ready')
    talk.process.terminate()
    assert talk.end() == 1
    assert 'Not finished after 1 seconds' in ''.join(talk.said)


@pytest.mark.parametrize('backend', BACKENDS)
def test_a_start_that_never_returns_can_be_ended(start: Start, backend: str) -> None:
    """It may wait for a bus that is not there."""
    talk = start(backend, mood='stuck')
    talk.until('start in')
    talk.process.terminate()
    assert talk.end() == 0
    said = ''.join(talk.said)
    assert 'Received SIGTERM before it was ready' in said
    assert 'Ready' not in said
    assert 'Traceback' not in said


@pytest.mark.parametrize('backend', BACKENDS)
def test_a_start_that_hears_of_its_end_ends_cleanly(start: Start, backend: str) -> None:
    talk = start(backend, mood='slow')
    talk.until('start in')
    talk.process.terminate()
    assert talk.end() == 0
    assert [line.split()[0] for line in talk.said if f'of {backend}' in line][-1] == (
        'wait'
    )


def test_a_reload_during_the_start_is_done_after_it(start: Start, config: Path) -> None:
    talk = start('threading', mood='signalled')
    talk.until('Ready')
    talk.until('reload')
    talk.process.terminate()
    assert talk.end() == 0


def test_a_daemon_that_cannot_start_says_why_without_a_traceback(start: Start) -> None:
    talk = start('threading', mood='refuse')
    assert talk.end() == 1
    said = ''.join(talk.said)
    assert 'Cannot start: It is Monday. Correct the configuration file' in said
    assert 'Traceback' not in said


@pytest.mark.parametrize('backend', BACKENDS)
def test_each_worker_has_its_own_daemon_and_all_end(start: Start, backend: str) -> None:
    talk = start(backend, workers=2)
    talk.until('is ready', times=2)
    talk.process.terminate()
    assert talk.end() == 0
    said = ''.join(talk.said)
    started = set(re.findall(r'start in (\d+)', said))
    assert len(started) == 2
    assert str(talk.process.pid) not in started
    assert set(re.findall(r'wait in (\d+)', said)) == started


def test_sigusr2_writes_a_report_and_ends_nothing(start: Start) -> None:
    talk = start('threading')
    talk.until('Ready')
    talk.process.send_signal(signal.SIGUSR2)
    talk.until('Guru Meditation')
    talk.process.terminate()
    assert talk.end() == 0
