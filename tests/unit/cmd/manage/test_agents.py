# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage agent``."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents
from cyborg_lite.model.hosts.services import HeartbeatDetails
from tests.builders.reports import HOST
from tests.servers.message_keys import write_lines

Out = pytest.CaptureFixture[str]


def test_forget_identity_lets_next_agent_replace(
    write_config: Callable[..., list[str]], database: Database, capsys: Out
) -> None:
    details = HeartbeatDetails('boot', identity='identity-1')
    database.write(services.record_agent_heartbeat, HOST, '1', '', details)
    command = [*write_config(), 'agent', 'forget-identity', HOST]
    assert main.main(command) == 0
    agent = database.read(agents.find_agent, HOST)
    assert agent is not None
    assert agent.identity is None
    assert main.main(command) == 1
    assert f'Host {HOST} has no agent with an identity.' in capsys.readouterr().out


def test_agent_key_prints_key_of_host(
    write_config: Callable[..., list[str]], tmp_path: Path, capsys: Out
) -> None:
    options = write_config(write_lines(tmp_path, HOST))
    for command, name in (
        (['key', HOST], f'agent-{HOST}.key'),
        (['api-key'], 'api.key'),
    ):
        assert main.main([*options, 'agent', *command]) == 0
        assert capsys.readouterr().out.strip() == (tmp_path / name).read_text()


def test_agent_secret_creates_file_once(
    write_config: Callable[..., list[str]], tmp_path: Path, capsys: Out
) -> None:
    path = tmp_path / 'secret'
    options = write_config(f'[conductor]\nagent_key_secret_file = {path}\n')
    assert main.main([*options, 'agent', 'key', HOST]) == 2
    assert '`cyborg-lite-manage agent secret`' in capsys.readouterr().err
    for expected in ('Created', 'exists'):
        assert main.main([*options, 'agent', 'secret']) == 0
        assert expected in capsys.readouterr().out
