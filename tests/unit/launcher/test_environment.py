# SPDX-License-Identifier: Apache-2.0
"""The virtual environment is made when it must be, and then left alone."""

import sys
from pathlib import Path

import pytest

from devstack.launcher import environment, places
from devstack.launcher.failure import LaunchFailed


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be run; nothing is, for an installation takes minutes."""
    run: list[list[str]] = []
    monkeypatch.setattr(
        environment, '_run', lambda command, _advice: run.append(command)
    )
    return run


def test_it_is_made_with_the_versions_that_are_known_to_work(
    top: Path, commands: list[list[str]]
) -> None:
    environment.ensure()
    made, installed = commands
    assert made == [sys.executable, '-m', 'venv', str(top / 'venv')]
    assert 'devstack/constraints.txt' in installed
    assert (top / 'installed').read_text() == environment.stamp()


def test_it_is_made_once(top: Path, commands: list[list[str]]) -> None:
    environment.ensure()
    environment.ensure()
    assert len(commands) == 2


@pytest.mark.parametrize('name', ['requirements.txt', 'devstack/constraints.txt'])
def test_it_is_made_anew_when_a_requirement_changes(
    top: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    environment.ensure()
    checkout = top / 'checkout'
    for each in environment._MADE_FROM:
        (checkout / each).parent.mkdir(parents=True, exist_ok=True)
        (checkout / each).write_bytes((places.ROOT / each).read_bytes())
    monkeypatch.setattr(places, 'ROOT', checkout)
    environment.ensure()
    assert len(commands) == 2
    (checkout / name).write_text('something-else\n')
    (top / 'venv').mkdir()
    environment.ensure()
    assert len(commands) == 4
    assert not (top / 'venv').exists()


def test_one_that_was_left_half_made_is_not_trusted(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_command: list[str], _advice: str) -> None:
        raise LaunchFailed('no network')

    (top / 'installed').write_text('of long ago')
    monkeypatch.setattr(environment, '_run', fail)
    with pytest.raises(LaunchFailed):
        environment.ensure()
    assert not (top / 'installed').exists()


def test_a_failed_installation_is_shown_by_its_end_with_advice(top: Path) -> None:
    (top / 'logs').mkdir()
    command = [sys.executable, '-c', 'print("no such package"); raise SystemExit(1)']
    with pytest.raises(LaunchFailed, match=r'(?s)no such package.*Buy a cable'):
        environment._run(command, 'Buy a cable.')
