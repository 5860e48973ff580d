# SPDX-License-Identifier: Apache-2.0
"""Tests of the process of a playbook: its lines, its lifeline, the end of a run."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.clients import playbook_process
from cyborg_lite.clients.playbook_process import EventWriter, Lifeline, kill_run, mask
from tests.support.processes import is_running


class Events:
    """An event writer with the lines that it has written."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.writer = EventWriter(self._stream)

    def send(self, kind: str, **data: Any) -> None:
        assert not self.writer.write_event({'event': kind, 'event_data': data})

    def read(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.mark.parametrize(
    ('kind', 'result', 'line'),
    [
        ('runner_on_ok', {}, 'step: ok'),
        ('runner_on_ok', {'changed': True}, 'step: changed'),
        ('runner_on_failed', {'msg': 'no'}, 'step: FAILED: no'),
        ('runner_on_failed', {'censored': 'hidden'}, 'step: FAILED: hidden'),
        ('runner_on_unreachable', {}, 'step: UNREACHABLE: no text'),
    ],
)
def test_task_is_one_line(
    events: Events, kind: str, result: dict[str, Any], line: str
) -> None:
    events.send(kind, task='step', res=result)
    assert events.read() == [{'line': line}]


def test_end_names_first_failure_that_counts(events: Events) -> None:
    failure = {'res': {'msg': 'no'}}
    events.send('runner_on_failed', task='a', ignore_errors=True, **failure)
    events.send('runner_on_failed', task='b', **failure)
    events.send('runner_on_failed', task='c', **failure)
    events.writer.write_end('failed')
    first, *_, end = events.read()
    assert first == {'line': 'a: FAILED: no (ignored)'}
    assert end == {'status': 'failed', 'failure': 'b: no'}


def test_end_names_error_of_ansible(events: Events) -> None:
    text = '\x1b[0;31m[ERROR]: the playbook x.yml could not be found\x1b[0m'
    events.writer.write_event({'event': 'verbose', 'stdout': text})
    events.writer.write_event({'event': 'verbose', 'stdout': 'ERROR! second'})
    events.writer.write_end('failed')
    assert events.read()[-1]['failure'] == 'the playbook x.yml could not be found'


@pytest.mark.parametrize(
    'text',
    ['fetch https://user:sesame@repo/x', "{'password': 'sesame'}", '--password sesame'],
)
def test_mask_removes_passwords(text: str) -> None:
    assert 'sesame' not in mask(text)


def test_mask_returns_short_line() -> None:
    text = mask('a\n b\t' + 'x' * 1000)
    assert text.startswith('a b x')
    assert len(text) == playbook_process.MAX_TEXT


@pytest.fixture
def standard_input() -> Iterator[int]:
    """Replace the standard input by a pipe; return its writing end."""
    copy = os.dup(0)
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    yield writer
    os.dup2(copy, 0)
    os.close(copy)


def test_lifeline_is_lost_at_end_of_input(standard_input: int) -> None:
    lifeline = Lifeline(patience=3600)
    assert not lifeline.is_lost()
    os.write(standard_input, b'..')
    assert not lifeline.is_lost()
    os.close(standard_input)
    assert lifeline.is_lost()


def test_lifeline_is_lost_without_input(
    standard_input: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    clock = 'cyborg_lite.clients.playbook_process.time.monotonic'
    monkeypatch.setattr(clock, lambda: now)
    lifeline = Lifeline(patience=10)
    now = 109.0
    os.write(standard_input, b'.')
    assert not lifeline.is_lost()
    now = 118.0
    assert not lifeline.is_lost()
    now = 120.0
    assert lifeline.is_lost()
    os.close(standard_input)


def test_kill_run_ends_processes_in_other_sessions(tmp_path: Path) -> None:
    """The descendants of a process that was killed are no longer its descendants."""
    code = (
        'import subprocess, sys\n'
        'command, null = ["sleep", "600"], subprocess.DEVNULL\n'
        'options = {"stdout": null, "stderr": null, "start_new_session": True}\n'
        'child = subprocess.Popen(command, **options)\n'
        'print(child.pid, flush=True)\n'
    )
    variables = {**os.environ, playbook_process.RUN: str(tmp_path)}
    command = [sys.executable, '-c', code]
    output = subprocess.run(command, env=variables, capture_output=True, check=True)
    orphan = int(output.stdout)
    assert is_running(orphan)
    assert kill_run(tmp_path / 'other')
    assert is_running(orphan)
    assert kill_run(tmp_path)
    assert not is_running(orphan)


def test_kill_run_reports_process_that_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playbook_process, 'KILL_SECONDS', -1)
    with subprocess.Popen(['sleep', '600']) as process:
        pids = [process.pid]
        monkeypatch.setattr(playbook_process, '_list_processes', lambda _mark: pids)
        assert not kill_run(tmp_path)
        process.kill()
