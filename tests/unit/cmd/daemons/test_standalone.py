# SPDX-License-Identifier: Apache-2.0
"""Tests of all daemons in one process: exposure of the API."""

from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import standalone
from cyborg_lite.errors.daemons import ConfigurationError

Configure = Callable[..., cfg.ConfigOpts]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def _configure(api: str = '', *arguments: str) -> cfg.ConfigOpts:
        file = tmp_path / 'cyborg-lite.conf'
        file.write_text(
            f'[database]\nconnection = sqlite:///{tmp_path}/db.sqlite\n'
            f'[placement]\nendpoint_override = http://127.0.0.1:1\n[api]\n{api}\n'
        )
        conf = configuration.parse(
            arguments, 'prog', [str(file)], command_line=standalone.OPTIONS
        )
        standalone.set_defaults(conf)
        return conf

    return _configure


def test_set_defaults_uses_loopback_and_local_bus(configure: Configure) -> None:
    conf = configure()
    assert conf.transport_url == 'local://'
    assert (conf.api.auth_strategy, conf.api.host) == ('noauth', '127.0.0.1')


def test_set_defaults_keeps_configured_values(configure: Configure) -> None:
    conf = configure('auth_strategy = keystone\nhost = 0.0.0.0')
    assert (conf.api.auth_strategy, conf.api.host) == ('keystone', '0.0.0.0')


@pytest.mark.parametrize('host', ['0.0.0.0', '::', '192.0.2.1', 'controller'])
def test_build_noauth_on_public_address_raises(configure: Configure, host: str) -> None:
    with pytest.raises(ConfigurationError, match='every caller an administrator'):
        standalone.build(configure(f'host = {host}'))


@pytest.mark.parametrize('host', ['127.0.0.1', '127.1.2.3', '::1', 'localhost'])
def test_build_noauth_on_loopback_succeeds(configure: Configure, host: str) -> None:
    standalone.build(configure(f'host = {host}'))


def test_build_keystone_on_public_address_succeeds(configure: Configure) -> None:
    standalone.build(configure('host = 0.0.0.0\nauth_strategy = keystone'))


def test_build_trust_network_logs_warning(
    configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    standalone.build(configure('host = 0.0.0.0', '--trust-network'))
    assert 'EVERY CALLER OF 0.0.0.0 IS AN ADMINISTRATOR' in caplog.text
