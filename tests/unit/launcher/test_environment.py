# SPDX-License-Identifier: Apache-2.0
"""Tests of creating the virtual environment."""

import sys
from pathlib import Path

import pytest

from devstack.launcher import environment, paths
from devstack.launcher.failure import LaunchFailed


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the commands instead of running them, which would take minutes."""
    run: list[list[str]] = []
    monkeypatch.setattr(
        environment, '_run', lambda command, _advice: run.append(command)
    )
    return run


def test_ensure_installs_with_constraints(top: Path, commands: list[list[str]]) -> None:
    environment.ensure()
    create, install = commands
    assert create == [sys.executable, '-m', 'venv', str(top / 'venv')]
    assert 'devstack/constraints.txt' in install
    assert (top / 'installed').read_text() == environment.input_digest()


def test_ensure_twice_installs_once(top: Path, commands: list[list[str]]) -> None:
    environment.ensure()
    environment.ensure()
    assert len(commands) == 2


@pytest.mark.parametrize('name', ['requirements.txt', 'devstack/constraints.txt'])
def test_ensure_changed_requirement_installs_again(
    top: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    environment.ensure()
    checkout = top / 'checkout'
    for path in environment._INPUT_FILES:
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_bytes((paths.ROOT / path).read_bytes())
    monkeypatch.setattr(paths, 'ROOT', checkout)
    environment.ensure()
    assert len(commands) == 2
    (checkout / name).write_text('something-else\n')
    (top / 'venv').mkdir()
    environment.ensure()
    assert len(commands) == 4
    assert not (top / 'venv').exists()


def test_ensure_failure_removes_digest(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_command: list[str], _advice: str) -> None:
        raise LaunchFailed('no network')

    (top / 'installed').write_text('old digest')
    monkeypatch.setattr(environment, '_run', fail)
    with pytest.raises(LaunchFailed):
        environment.ensure()
    assert not (top / 'installed').exists()


def test_run_failure_shows_log_and_advice(top: Path) -> None:
    (top / 'logs').mkdir()
    command = [sys.executable, '-c', 'print("no such package"); raise SystemExit(1)']
    with pytest.raises(LaunchFailed, match=r'(?s)no such package.*Check the network'):
        environment._run(command, 'Check the network.')
