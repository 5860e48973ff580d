# SPDX-License-Identifier: Apache-2.0
"""Tests of the conductor daemon: its build from the options, start and stop."""

import urllib.request
from collections.abc import Callable

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import conductor
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR
from cyborg_lite.version import VERSION
from devstack.launcher.configuration import free_port
from tests.builders.service_rows import mark_down

Configure = Callable[[str], cfg.ConfigOpts]

REQUIRED = (
    '[DEFAULT]\ntransport_url = local://\nhost = controller-1\n'
    '[placement]\nendpoint_override = http://127.0.0.1:1\n'
    '[conductor]\n'
)


@pytest.fixture
def configure(write_config: Callable[..., list[str]]) -> Configure:
    """Return a function that parses a file with further lines of ``[conductor]``."""

    def parse(lines: str) -> cfg.ConfigOpts:
        return configuration.parse(write_config(REQUIRED + lines), CONDUCTOR)

    return parse


def test_metrics_port_0_opens_none(configure: Configure) -> None:
    assert not conductor._metrics_ports(configure('metrics_port = 0\nworkers = 4\n'))


@pytest.mark.parametrize(
    'lines',
    [
        '[placement]\nauth_type = password\n',
        '[placement]\nauth_type = nonsense\n',
        '[database]\nconnection = sqlite://\n',
        '[DEFAULT]\ntransport_url = nonsense\n',
    ],
)
def test_build_invalid_service_raises(configure: Configure, lines: str) -> None:
    with pytest.raises(ConfigurationError):
        conductor.build(configure(lines))


def test_start_serves_metrics_on_free_port(configure: Configure) -> None:
    port = free_port()
    service = conductor.build(configure(f'metrics_port = {port}\n'))
    service.start()
    try:
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics') as response:
            assert b'cyborg_lite_' in response.read()
        second = conductor.build(configure(f'metrics_port = {port}\n'))
        with pytest.raises(ConfigurationError, match='no port is free'):
            second.start()
    finally:
        service.stop()
        service.wait()


def test_read_versions_lists_running_daemons_of_other_versions(
    database: Database,
) -> None:
    database.write(services.record_start, AGENT, 'cpu1', '0.1.0')
    database.write(services.record_start, AGENT, 'cpu2', VERSION)
    mark_down(database, 'cpu3')
    assert list(conductor._read_versions(database)) == [(AGENT, '0.1.0')]
