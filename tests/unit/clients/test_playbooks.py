# SPDX-License-Identifier: Apache-2.0
"""Tests of playbooks: results, events, and the process of a run.

The tests of ``tests/ansible`` run real playbooks.
"""

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from cyborg_lite.clients import playbooks
from cyborg_lite.clients.playbooks import (
    PlaybookOrder,
    PlaybookResult,
    PlaybookRunner,
    check_installed,
)
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.devices import ReconfigurationDelayed

PATIENCE = 60.0
# Stands for the process of a playbook: writes what the order contains to `events`.
PROGRAM = """
import json, os, pathlib, sys
directory = pathlib.Path(sys.argv[1])
order = json.loads((directory / 'order.json').read_text())
assert pathlib.Path(order['inventory']).is_absolute()
assert 'CLOUD_PASSWORD' not in os.environ
with (directory / 'events').open('w') as stream:
    for event in order['variables']['events']:
        stream.write(json.dumps(event) + chr(10))
if order['variables']['waits']:
    sys.stdin.read()
"""


@pytest.fixture
def run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the program of a run; return the directory of the playbooks."""
    (tmp_path / 'playbook_process.py').write_text(PROGRAM)
    monkeypatch.setattr(playbooks, '__file__', str(tmp_path / 'playbooks.py'))
    monkeypatch.setenv('CLOUD_PASSWORD', 'secret')
    return tmp_path


def build_order(directory: Path, *events: object, waits: bool = False) -> PlaybookOrder:
    variables = {'events': events, 'waits': waits}
    return PlaybookOrder(str(directory), 'hosts', 'site.yml', 'h', variables, 60)


@pytest.mark.parametrize(
    ('result', 'reason'),
    [
        (PlaybookResult('successful'), ''),
        (PlaybookResult('timeout', 'x'), 'It exceeded its timeout and was killed.'),
        (PlaybookResult('failed', 'step: no'), 'step: no'),
        (PlaybookResult('failed'), 'Ansible ended with status failed.'),
    ],
)
def test_result_has_reason_unless_successful(
    result: PlaybookResult, reason: str
) -> None:
    assert result.reason == reason


def test_run_confirms_lines_and_returns_result(run_directory: Path) -> None:
    lines: list[str] = []

    def confirm(items: Sequence[str]) -> bool:
        lines.extend(items)
        return True

    order = build_order(
        run_directory,
        {'line': 'step: ok'},
        {'line': 'next: changed'},
        {'status': 'failed', 'failure': 'next: no'},
    )
    result = PlaybookRunner(PATIENCE, threading.Event()).run(order, confirm)
    assert result == PlaybookResult('failed', 'next: no')
    assert lines == ['step: ok', 'next: changed']


@pytest.mark.parametrize('events', [(), ({'status': 'canceled', 'failure': ''},)])
def test_run_killed_playbook_is_delayed(
    run_directory: Path, events: Sequence[object]
) -> None:
    runner = PlaybookRunner(PATIENCE, threading.Event())
    with pytest.raises(ReconfigurationDelayed, match='was killed'):
        runner.run(build_order(run_directory, *events), lambda _lines: True)


def test_run_ends_with_conductor(run_directory: Path) -> None:
    stopping = threading.Event()
    stopping.set()
    order = build_order(run_directory, waits=True)
    with pytest.raises(ReconfigurationDelayed, match='The conductor stops'):
        PlaybookRunner(PATIENCE, stopping).run(order, lambda _lines: True)


def test_events_are_read_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / 'events'
    reader = playbooks._EventReader(path)
    assert reader.read_lines() == []
    text = json.dumps({'line': 'one'}) + '\n' + json.dumps({'line': 'two'})
    path.write_text(text)
    assert reader.read_lines() == ['one']
    path.write_text(f'{text}\n')
    assert reader.read_lines() == ['two']
    assert reader.read_lines() == []


def test_check_installed_names_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playbooks, 'PROGRAM', 'no-such-program')
    with pytest.raises(ConfigurationError, match=r'cyborg-lite\[ansible\]'):
        check_installed()
