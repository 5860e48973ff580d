# SPDX-License-Identifier: Apache-2.0
"""All daemons in one process: who is let in, and in which order they come and go."""

from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import standalone
from cyborg_lite.exceptions import ConfigurationError

Configured = Callable[..., cfg.ConfigOpts]


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    def _configured(api: str = '', *arguments: str) -> cfg.ConfigOpts:
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

    return _configured


def test_without_a_word_it_keeps_to_itself(configured: Configured) -> None:
    conf = configured()
    assert conf.transport_url == 'local://'
    assert (conf.api.auth_strategy, conf.api.host) == ('noauth', '127.0.0.1')


def test_a_file_that_says_otherwise_is_heard(configured: Configured) -> None:
    conf = configured('auth_strategy = keystone\nhost = 0.0.0.0')
    assert (conf.api.auth_strategy, conf.api.host) == ('keystone', '0.0.0.0')


@pytest.mark.parametrize('host', ['0.0.0.0', '::', '192.0.2.1', 'controller'])
def test_nobody_is_trusted_from_elsewhere(configured: Configured, host: str) -> None:
    with pytest.raises(ConfigurationError, match='trusts them all'):
        standalone.build(configured(f'host = {host}'))


@pytest.mark.parametrize('host', ['127.0.0.1', '127.1.2.3', '::1', 'localhost'])
def test_whoever_is_on_this_host_is_trusted(configured: Configured, host: str) -> None:
    standalone.build(configured(f'host = {host}'))


def test_with_keystone_any_address_will_do(configured: Configured) -> None:
    standalone.build(configured('host = 0.0.0.0\nauth_strategy = keystone'))


def test_a_closed_network_can_be_trusted_loudly(
    configured: Configured, caplog: pytest.LogCaptureFixture
) -> None:
    standalone.build(configured('host = 0.0.0.0', '--trust-network'))
    assert 'EVERYBODY WHO REACHES 0.0.0.0 IS AN ADMINISTRATOR' in caplog.text


class Part:
    """Writes down what happens to it."""

    def __init__(self, name: str, diary: list[str], *, fails: bool = False) -> None:
        self._name = name
        self._diary = diary
        self._fails = fails

    def start(self) -> None:
        if self._fails:
            raise ConfigurationError(reason='It is Monday.')
        self._diary.append(f'{self._name} starts')

    def stop(self) -> None:
        self._diary.append(f'{self._name} stops')

    def wait(self) -> None:
        self._diary.append(f'{self._name} ended')


class RetiringPart(Part):
    def retire(self) -> None:
        self._diary.append(f'{self._name} retires')


def test_what_acts_of_itself_rests_before_any_ends() -> None:
    """An agent whose report nobody answers any more would keep us waiting."""
    diary: list[str] = []
    parts = [RetiringPart('agent', diary), Part('conductor', diary)]
    daemon = standalone.Standalone(lambda: None, parts)
    daemon.start()
    daemon.stop()
    daemon.wait()
    assert diary[2:4] == ['agent retires', 'conductor stops']


def test_each_ends_before_those_that_it_needs() -> None:
    diary: list[str] = []
    parts = [Part(name, diary) for name in ('agent', 'conductor', 'api')]
    daemon = standalone.Standalone(lambda: diary.append('schema'), parts)
    daemon.start()
    daemon.stop()
    daemon.wait()
    assert diary == [
        *('schema', 'agent starts', 'conductor starts', 'api starts'),
        *('api stops', 'api ended', 'conductor stops', 'conductor ended'),
        *('agent stops', 'agent ended'),
    ]


def test_when_one_cannot_start_those_before_it_end() -> None:
    diary: list[str] = []
    parts = [Part('agent', diary), Part('conductor', diary, fails=True)]
    daemon = standalone.Standalone(lambda: None, parts)
    with pytest.raises(ConfigurationError):
        daemon.start()
    assert diary == ['agent starts', 'agent stops', 'agent ended']
