# SPDX-License-Identifier: Apache-2.0
"""Tests of all daemons in one process: exposure of the API, start and stop order."""

from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import standalone
from cyborg_lite.exceptions import ConfigurationError

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


class RecordingDaemon:
    """A daemon that appends each call to a list."""

    def __init__(self, name: str, calls: list[str], *, fails: bool = False) -> None:
        self._name = name
        self._calls = calls
        self._fails = fails

    def start(self) -> None:
        if self._fails:
            raise ConfigurationError(reason='It is Monday.')
        self._calls.append(f'{self._name} starts')

    def stop(self) -> None:
        self._calls.append(f'{self._name} stops')

    def wait(self) -> None:
        self._calls.append(f'{self._name} ended')


class RetirableDaemon(RecordingDaemon):
    def retire(self) -> None:
        self._calls.append(f'{self._name} retires')


def test_stop_retires_agent_before_conductor_stops() -> None:
    """Otherwise the agent would wait for the answer to a report."""
    calls: list[str] = []
    daemons = [RetirableDaemon('agent', calls), RecordingDaemon('conductor', calls)]
    daemon = standalone.Standalone(lambda: None, daemons)
    daemon.start()
    daemon.stop()
    daemon.wait()
    assert calls[2:4] == ['agent retires', 'conductor stops']


def test_wait_stops_daemons_in_reverse_order() -> None:
    calls: list[str] = []
    daemons = [RecordingDaemon(name, calls) for name in ('agent', 'conductor', 'api')]
    daemon = standalone.Standalone(lambda: calls.append('schema'), daemons)
    daemon.start()
    daemon.stop()
    daemon.wait()
    assert calls == [
        *('schema', 'agent starts', 'conductor starts', 'api starts'),
        *('api stops', 'api ended', 'conductor stops', 'conductor ended'),
        *('agent stops', 'agent ended'),
    ]


def test_start_failure_stops_earlier_daemons() -> None:
    calls: list[str] = []
    agent = RecordingDaemon('agent', calls)
    conductor = RecordingDaemon('conductor', calls, fails=True)
    daemon = standalone.Standalone(lambda: None, [agent, conductor])
    with pytest.raises(ConfigurationError):
        daemon.start()
    assert calls == ['agent starts', 'agent stops', 'agent ended']
