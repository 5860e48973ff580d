# SPDX-License-Identifier: Apache-2.0
"""The daemon of the API: its parts start and end together."""

import http.client
import json
from contextlib import closing
from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import api
from cyborg_lite.exceptions import ConfigurationError


def started(tmp_path: Path, more: str = '') -> api.ApiDaemon:
    file = tmp_path / 'api.conf'
    file.write_text(
        '[DEFAULT]\ntransport_url = fake://\nrpc_response_timeout = 1\n'
        '[api]\nauth_strategy = noauth\nhost = 127.0.0.1\nport = 0\n' + more
    )
    daemon = api.build(configuration.parse([], api.BINARY, [str(file)]))
    daemon.start()
    return daemon


def ask(port: int, path: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection('127.0.0.1', port)) as connection:
        connection.request('GET', path, headers={'X-Auth-Token': 'admin'})
        response = connection.getresponse()
        return response.status, response.read()


def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    daemon = started(tmp_path)
    port = daemon.port
    assert ask(port, '/v2')[0] == 200
    daemon.stop()
    daemon.wait()
    with pytest.raises(ConnectionRefusedError):
        ask(port, '/v2')


def test_without_a_conductor_it_says_who_is_away(tmp_path: Path) -> None:
    daemon = started(tmp_path)
    try:
        status, body = ask(daemon.port, '/v2/devices')
    finally:
        daemon.stop()
        daemon.wait()
    assert status == 503
    fault = json.loads(json.loads(body)['error_message'])
    assert 'cyborg-lite-conductor does not answer' in fault['faultstring']


@pytest.mark.parametrize(('said', 'seconds'), [('', 30), ('1', 1), ('90', 90)])
def test_it_waits_half_of_the_minute_that_its_clients_have(
    tmp_path: Path, said: str, seconds: int
) -> None:
    file = tmp_path / 'api.conf'
    wanted = f'rpc_response_timeout = {said}\n' if said else ''
    file.write_text(f'[DEFAULT]\ntransport_url = fake://\n{wanted}')
    conf = configuration.parse([], api.BINARY, [str(file)])
    daemon = api.build(conf)
    conf.set_override('port', 0, group='api')
    conf.set_override('auth_strategy', 'noauth', group='api')
    daemon.start()
    daemon.stop()
    daemon.wait()
    assert conf.rpc_response_timeout == seconds


def test_stopping_before_the_start_is_harmless() -> None:
    daemon = api.build(configuration.parse([], api.BINARY, []))
    daemon.stop()
    daemon.wait()


def test_a_wrong_configuration_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        started(tmp_path, 'certificate_file = /nonexistent\n')
