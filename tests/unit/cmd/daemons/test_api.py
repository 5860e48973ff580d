# SPDX-License-Identifier: Apache-2.0
"""Tests of the API daemon: start, stop, RPC timeout and versions of conductors."""

import http.client
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import api, api_application
from cyborg_lite.model.hosts.services import CONDUCTOR, Service, ServiceState
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.version import VERSION
from tests.servers.message_keys import write_lines


def start_daemon(tmp_path: Path, options: str = '') -> api.ApiDaemon:
    file = tmp_path / 'api.conf'
    file.write_text(
        '[DEFAULT]\ntransport_url = fake://\nrpc_response_timeout = 1\n'
        '[api]\nauth_strategy = noauth\nhost = 127.0.0.1\nport = 0\n'
        + write_lines(tmp_path, 'controller')
        + options
    )
    daemon = api.build(configuration.parse([], api.BINARY, [str(file)]))
    daemon.start()
    return daemon


def test_option_of_proxy_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = start_daemon(tmp_path, '[api]\ncertificate_file = /x.pem\n')
    daemon.stop()
    daemon.wait()
    assert '[api] certificate_file has no effect' in caplog.text
    assert 'HAProxy or nginx' in caplog.text
    assert 'auth_strategy has no effect' not in caplog.text


def get(port: int, path: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection('127.0.0.1', port)) as connection:
        connection.request('GET', path, headers={'X-Auth-Token': 'admin'})
        response = connection.getresponse()
        return response.status, response.read()


def test_daemon_after_stop_refuses_connections(tmp_path: Path) -> None:
    daemon = start_daemon(tmp_path)
    port = daemon.port
    assert get(port, '/v2')[0] == 200
    daemon.stop()
    daemon.wait()
    with pytest.raises(ConnectionRefusedError):
        get(port, '/v2')


@pytest.mark.parametrize(('option', 'seconds'), [('', 30), ('1', 1), ('90', 90)])
def test_rpc_timeout_defaults_to_30_seconds(
    tmp_path: Path, option: str, seconds: int
) -> None:
    file = tmp_path / 'api.conf'
    line = f'rpc_response_timeout = {option}\n' if option else ''
    keys = write_lines(tmp_path, 'controller')
    file.write_text(f'[DEFAULT]\ntransport_url = fake://\n{line}{keys}')
    conf = configuration.parse([], api.BINARY, [str(file)])
    daemon = api.build(conf)
    conf.set_override('port', 0, group='api')
    conf.set_override('auth_strategy', 'noauth', group='api')
    daemon.start()
    daemon.stop()
    daemon.wait()
    assert conf.rpc_response_timeout == seconds


def test_stop_before_start_does_nothing() -> None:
    daemon = api.build(configuration.parse([], api.BINARY, []))
    daemon.stop()
    daemon.wait()


def test_read_versions_asks_for_running_conductors() -> None:
    conductor = mock.create_autospec(Conductor, instance=True)
    moment = datetime(2026, 11, 22, tzinfo=UTC)
    conductor.list_services.return_value = [
        Service('u', CONDUCTOR, 'ctl', text, ServiceState.UP, moment, moment)
        for text in ('0.1.0', VERSION)
    ]
    assert list(api_application._read_versions(conductor)) == [(CONDUCTOR, '0.1.0')]
    _context, query = conductor.list_services.call_args.args
    assert query.filters == {'binary': (CONDUCTOR,), 'state': (ServiceState.UP,)}
