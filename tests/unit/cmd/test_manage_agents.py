# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage agent``."""

from collections.abc import Callable

import pytest

from cyborg_lite.cmd import manage
from cyborg_lite.db import agent_identities, services
from cyborg_lite.db.engine import Database
from cyborg_lite.model.services import HeartbeatDetails
from tests.builders.reports import HOST

Out = pytest.CaptureFixture[str]


def test_forget_identity_lets_next_agent_replace(
    write_config: Callable[..., list[str]], database: Database, capsys: Out
) -> None:
    details = HeartbeatDetails('boot', identity='identity-1')
    database.write(services.record_agent_heartbeat, HOST, '1', '', details)
    command = [*write_config(), 'agent', 'forget-identity', HOST]
    assert manage.main(command) == 0
    agent = database.read(agent_identities.find_agent, HOST)
    assert agent is not None
    assert agent.identity is None
    assert manage.main(command) == 1
    assert f'Host {HOST} has no agent with an identity.' in capsys.readouterr().out
