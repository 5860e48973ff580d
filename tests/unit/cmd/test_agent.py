# SPDX-License-Identifier: Apache-2.0
"""The agent is built from its configuration, and mistakes are told at once."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import agent
from cyborg_lite.exceptions import ConfigurationError


def _build(tmp_path: Path, text: str) -> None:
    file = tmp_path / 'agent.conf'
    file.write_text(f'[DEFAULT]\ntransport_url = local://\n{text}')
    agent.build(configuration.parse([], 'cyborg-lite-agent', [str(file)]))


def test_the_default_configuration_will_do(tmp_path: Path) -> None:
    _build(tmp_path, '')


def test_an_unknown_driver_is_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match='Unknown driver no_such'):
        _build(tmp_path, '[agent]\nenabled_drivers = no_such\n')


@pytest.mark.parametrize('given', [[], ['discover']])
def test_a_value_that_cannot_be_ends_the_command_with_a_line(
    tmp_path: Path, given: list[str]
) -> None:
    file = tmp_path / 'agent.conf'
    file.write_text('[agent]\ndiscovery_interval = 0\n')
    with pytest.raises(SystemExit, match='discovery_interval') as caught:
        agent.main([*given, '--config-file', str(file)])
    assert '\n' not in str(caught.value)
