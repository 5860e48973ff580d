# SPDX-License-Identifier: Apache-2.0
"""Tests of the container file: users, health checks and commands."""

import configparser
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
DAEMONS: Final = ('api', 'conductor', 'agent')


def _read_stages() -> dict[str, list[str]]:
    """Return the instructions of each stage, with continuation lines joined."""
    text = (ROOT / 'etc/containers/Dockerfile').read_text(encoding='utf-8')
    text = re.sub(r'^#.*\n', '', text, flags=re.MULTILINE)
    stages: dict[str, list[str]] = {}
    instructions: list[str] = []
    for line in re.sub(r'\\\n', ' ', text).splitlines():
        if line.startswith('FROM '):
            instructions = stages.setdefault(line.split()[-1], [])
        elif line:
            instructions.append(line)
    return stages


def _list_commands(instructions: list[str]) -> Iterator[list[str]]:
    for instruction in instructions:
        if instruction.startswith(('ENTRYPOINT', 'HEALTHCHECK')):
            yield json.loads(instruction[instruction.index('[') :])


@pytest.mark.parametrize('daemon', DAEMONS)
def test_container_runs_daemon_as_user_with_health_check(daemon: str) -> None:
    instructions = _read_stages()[daemon]
    users = [line.split()[1] for line in instructions if line.startswith('USER')]
    assert users[-1:] == ['cyborg-lite']
    health, entry_point = _list_commands(instructions)
    assert entry_point == [f'cyborg-lite-{daemon}']
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    scripts = parser['options.entry_points']['console_scripts']
    assert all(
        f'{command} =' in scripts
        for command in (health[0], entry_point[0])
        if command != 'python'
    )


def test_container_agent_uses_installed_privsep_helper() -> None:
    rule = (ROOT / 'etc/sudoers.d/cyborg-lite').read_text(encoding='utf-8')
    assert '/usr/bin/privsep-helper' in rule
    assert any('/usr/bin/privsep-helper' in line for line in _read_stages()['agent'])
