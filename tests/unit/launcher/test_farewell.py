# SPDX-License-Identifier: Apache-2.0
"""What a person is left with: a file to be sourced, and commands to be pasted."""

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from devstack.launcher import farewell, places
from devstack.launcher.rest import Service
from devstack.launcher.stack import Stack


def test_the_file_survives_a_place_with_spaces(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = top / "it's a place"
    odd.mkdir()
    monkeypatch.setattr(places, 'CONFIG', odd / 'cyborg-lite.conf')
    made = SimpleNamespace(
        accelerator=Service('http://a'), placement=Service('http://p')
    )
    farewell.write_env(cast(Stack, made))
    shown = subprocess.run(
        ['sh', '-c', f'. {shlex.quote(str(places.ENV))}; echo "$CYBORG_LITE_CONFIG"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == str(odd / 'cyborg-lite.conf')


def test_the_commands_name_the_file_and_the_logs(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    farewell.show_commands()
    shown = capsys.readouterr().out
    assert f'. {top}/env' in shown
    assert f'Logs are in {top}/logs' in shown


def test_the_file_can_be_pasted_whatever_its_name(
    top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = top / "it's a place"
    monkeypatch.setattr(places, 'ENV', odd)
    farewell.show_commands()
    assert f'. {shlex.quote(str(odd))}\n' in capsys.readouterr().out
