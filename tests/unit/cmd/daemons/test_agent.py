# SPDX-License-Identifier: Apache-2.0
"""Tests of building the agent, and of ``cyborg-lite-agent ready``."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.agent.arqs.readiness import record_rebuilt
from cyborg_lite.agent.service import AgentService
from cyborg_lite.cmd.daemons import agent
from cyborg_lite.errors.daemons import ConfigurationError


def _build(tmp_path: Path, text: str) -> AgentService:
    file = tmp_path / 'agent.conf'
    file.write_text(f'[DEFAULT]\ntransport_url = local://\n{text}')
    return agent.build(configuration.parse([], 'cyborg-lite-agent', [str(file)]))


def test_build_network_boot_is_fact_of_host(tmp_path: Path) -> None:
    section = '[agent]\nboots_from_network = true\n'
    texts = ('', section)
    hosts = [_build(tmp_path, text)._resources.host for text in texts]
    assert [host.has_system_disk for host in hosts] == [True, False]


def test_build_unknown_driver_raises(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match='Unknown driver no_such'):
        _build(tmp_path, '[agent]\nenabled_drivers = no_such\n')


@pytest.mark.parametrize('subcommand', [[], ['discover']])
def test_main_invalid_option_exits_with_one_line(
    tmp_path: Path, subcommand: list[str]
) -> None:
    file = tmp_path / 'agent.conf'
    file.write_text('[agent]\ndiscovery_interval = 0\n')
    with pytest.raises(SystemExit, match='discovery_interval') as caught:
        agent.main([*subcommand, '--config-file', str(file)])
    assert '\n' not in str(caught.value)


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return the command line on a host with boot id b1."""
    boot_id = tmp_path / 'proc/sys/kernel/random/boot_id'
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text('b1\n')
    file = tmp_path / 'agent.conf'
    file.write_text(f'[agent]\nstate_path = {tmp_path}\nsysfs_root = {tmp_path}\n')
    return ['ready', '--config-file', str(file)]


def test_ready_agent_never_started_returns_1(arguments: list[str]) -> None:
    assert agent.main(arguments) == 1


@pytest.mark.parametrize(('boot_id', 'status'), [('b1', 0), ('b0', 1), ('', 1)])
def test_ready_compares_boot_of_host(
    tmp_path: Path, arguments: list[str], boot_id: str, status: int
) -> None:
    record_rebuilt(tmp_path, boot_id)
    assert agent.main(arguments) == status
