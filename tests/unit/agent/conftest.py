# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the agent tests: empty state files, and an agent that reports."""

from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from tests.doubles.reporting_agent import ALWAYS_DUE, ReportingAgent


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / 'state')


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / 'state')


@pytest.fixture
def heartbeat_agent(tmp_path: Path) -> ReportingAgent:
    """Return an agent whose heartbeat is always due."""
    return ReportingAgent(tmp_path, ALWAYS_DUE)


@pytest.fixture
def conf(request: pytest.FixtureRequest, tmp_path: Path) -> cfg.ConfigOpts:
    """Return a configuration with a bus of its own."""
    file = tmp_path / 'agent.conf'
    bus = f'transport_url = local:///{request.node.name}'
    file.write_text(f'[DEFAULT]\n{bus}\nrpc_response_timeout = 1\n')
    conf = cfg.ConfigOpts()
    conf(['--config-file', str(file)])
    return conf
