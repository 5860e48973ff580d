# SPDX-License-Identifier: Apache-2.0
"""The web server of our own: it listens, serves, and stops when all is answered."""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cyborg_lite.api.server import ApiServer
from cyborg_lite.exceptions import ConfigurationError
from tests.fakes.certificate import write_certificate
from tests.unit.api.conversation import ADMIN, Client


def section(**options: Any) -> Any:
    """``[api]`` of a service on loopback."""
    found = {
        'host': '127.0.0.1',
        'port': 0,
        'threads': 4,
        'workers': 1,
        'certificate_file': None,
        'private_key_file': None,
    }
    return SimpleNamespace(**{**found, **options})


@pytest.fixture(scope='module')
def shared() -> Iterator[ApiServer]:
    """One server for requests that ought to leave no trace."""
    with serving(Client().application) as server:
        yield server


@contextmanager
def serving(application: Any, **options: Any) -> Iterator[ApiServer]:
    server = ApiServer(application, section(**options))
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.wait()


def ask(
    server: ApiServer, path: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    with closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection:
        connection.request('GET', path, headers=headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def echo(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Answers with what it was asked, as JSON."""
    start_response('200 OK', [('Content-Type', 'application/json')])
    asked = {key: value for key, value in environ.items() if isinstance(value, str)}
    return [json.dumps(asked).encode()]


def test_the_application_is_served(client: Client) -> None:
    with serving(client.application) as server:
        status, headers, body = ask(server, '/accelerator/v2')
        assert status == 200
        assert headers['Content-Type'] == 'application/json'
        href = json.loads(body)['links'][0]['href']
        assert href == f'http://127.0.0.1:{server.port}/accelerator/v2/'
        assert ask(server, '/v2/devices', ADMIN)[0] == 200
        assert ask(server, '/v2/devices')[0] == 401


def test_one_connection_serves_many_requests(client: Client) -> None:
    with (
        serving(client.application) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        connection.connect()
        kept = connection.sock
        body = json.dumps([{'name': 'dp1', 'groups': [{'resources:FPGA': 1}]}])
        headers = {**ADMIN, 'Content-Type': 'application/json'}
        for method, path, sent, status in (
            ('POST', '/v2/device_profiles', body, 201),
            ('GET', '/v2/device_profiles', None, 200),
            ('GET', '/v2/nothing', None, 404),
            ('HEAD', '/v2/device_profiles', None, 200),
            ('DELETE', '/v2/device_profiles/dp1', None, 204),
            ('DELETE', '/v2/device_profiles/dp1', None, 404),
        ):
            connection.request(method, path, sent, headers)
            response = connection.getresponse()
            response.read()
            assert response.status == status
            assert connection.sock is kept


def test_a_body_in_chunks_is_read(client: Client) -> None:
    with (
        serving(client.application) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        headers = {**ADMIN, 'Content-Type': 'application/json'}
        chunks = iter([b'[{"name": "dp1", "groups": ', b'[{"resources:FPGA": 1}]}]'])
        connection.request('POST', '/v2/device_profiles', chunks, headers)
        assert connection.getresponse().status == 201


def test_a_name_with_underscores_does_not_pass_for_one_with_hyphens() -> None:
    """A proxy that takes X-Roles away would let X_Roles through."""
    with serving(echo) as server:
        headers = {'X_Roles': 'admin', 'X-Project-Id': 'p'}
        asked = json.loads(ask(server, '/', headers)[2])
    assert asked['HTTP_X_PROJECT_ID'] == 'p'
    assert 'HTTP_X_ROLES' not in asked


POST = b'POST /v2/device_profiles HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin'
NEXT = b'GET /v2/smuggled HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\n\r\n'


def raw(server: ApiServer, sent: bytes) -> bytes:
    with socket.create_connection(('127.0.0.1', server.port)) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b''.join(iter(lambda: connection.recv(65536), b''))


def check_clear(answer: bytes) -> None:
    """Whoever refuses, the application or the server: it is our error document."""
    head, _, body = answer.partition(b'\r\n\r\n')
    if head.split()[1] < b'400':
        return
    assert b'Content-Type: application/json' in head
    assert b'x-openstack-request-id: req-' in head.lower()
    assert b'OpenStack-API-Maximum-Version: ' in head
    assert b'Vary: OpenStack-API-Version' in head
    document = json.loads(body)
    if head.split()[1] != b'401':
        assert json.loads(document['error_message'])['faultstring']
        assert document['errors'][0]['detail']
    assert b'Traceback' not in body
    assert b'site-packages' not in body


@pytest.mark.parametrize(
    'line',
    [
        b'GET /v2/%zz HTTP/1.1',
        b'GET /v2/%ff%00 HTTP/1.1',
        b'GET /v2/devices?%ff HTTP/1.1',
        b'GET /v2/\xff HTTP/1.1',
        b'GET //v2 HTTP/1.1',
        b'GET http://x/v2 HTTP/1.1',
        b'GET /v2#x HTTP/1.1',
        b'GET * HTTP/1.1',
        b'OPTIONS * HTTP/1.1',
        b'CONNECT x:1 HTTP/1.1',
        b'GET  HTTP/1.1',
        b'GET / HTTP/9.9',
        b'GET /v2/' + b'x' * 70_000 + b' HTTP/1.1',
        b'\x16\x03\x01\x02\x00\x01',
    ],
)
def test_no_request_line_is_a_fault_of_ours(shared: ApiServer, line: bytes) -> None:
    answer = raw(shared, line + b'\r\nHost: x\r\nConnection: close\r\n\r\n')
    assert answer.split()[1][:1] in (b'2', b'4') or b'505' in answer
    check_clear(answer)
    assert ask(shared, '/v2')[0] == 200


@pytest.mark.parametrize(
    'header',
    [
        b'Content-Length: x',
        b'Content-Length: -1',
        b'Content-Length: 99999999999999999999',
        b'Content-Length: 1\r\nContent-Length: 2',
        b'Transfer-Encoding: gzip',
        b'Transfer-Encoding: chunked',
        b'Expect: a-miracle',
        b'Host:',
        b'X-Auth-Token:',
        b'X-Auth-Token: \xff\xfe',
        b'OpenStack-API-Version: \xff',
        b'Accept: \x01',
        b'X: ' + b'x' * 70_000,
        b'no colon',
    ],
)
def test_no_header_is_a_fault_of_ours(shared: ApiServer, header: bytes) -> None:
    sent = POST + b'\r\n' + header + b'\r\nConnection: close\r\n\r\nzz\r\n'
    answer = raw(shared, sent)
    # A server may refuse a transfer coding with 501, says its standard.
    status = answer.split()[1]
    assert status[:1] == b'4' or status == b'501'
    check_clear(answer)
    assert ask(shared, '/v2')[0] == 200


def test_a_body_that_nobody_read_is_not_the_next_request(client: Client) -> None:
    """Else whoever shares a connection with us through a proxy could be spoken for."""
    chunks = b'%x\r\n%s\r\n0\r\n\r\n' % (len(NEXT), NEXT)
    coded = b'Transfer-Encoding: chunked\r\n\r\n' + chunks
    counted = b'Content-Length: %d\r\n\r\n%s' % (len(NEXT), NEXT)
    with serving(client.application) as server:
        for body in (coded, counted, b'Content-Length: 3\r\n' + coded):
            refused = b'\r\nContent-Type: text/plain\r\n' + body
            answer = raw(server, POST + refused)
            assert answer.count(b'HTTP/1.1 ') == 1
            assert b' 415 ' in answer.splitlines()[0]


@pytest.mark.parametrize('coded', [False, True])
@pytest.mark.parametrize(
    ('more', 'status'), [({}, 413), ({'OpenStack-API-Version': 'x'}, 406)]
)
def test_who_sends_far_too_much_reads_the_answer_all_the_same(
    client: Client, coded: bool, more: dict[str, str], status: int
) -> None:
    body: Any = iter([b' ' * 2**20] * 20) if coded else b' ' * (20 * 2**20)
    with (
        serving(client.application) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        headers = {**ADMIN, 'Content-Type': 'application/json', **more}
        connection.request('POST', '/v2/device_profiles', body, headers)
        response = connection.getresponse()
        assert response.status == status
        assert json.loads(response.read())['errors']


# --- start and stop ---------------------------------------------------------------


class Gate:
    """An application that answers when it is told to."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        self.entered.set()
        self.opened.wait()
        start_response('200 OK', [('Content-Length', '4')])
        return [b'done']


def test_a_request_in_hand_is_answered_before_the_end() -> None:
    gate = Gate()
    server = ApiServer(gate, section())
    server.start()
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(ask, server, '/')
        gate.entered.wait()
        server.stop()
        ended = pool.submit(server.wait)
        assert not ended.done()
        gate.opened.set()
        assert answer.result()[2] == b'done'
        ended.result()


def test_an_idle_connection_does_not_keep_us() -> None:
    with (
        serving(echo) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        connection.request('GET', '/')
        connection.getresponse().read()
        server.stop()
        server.wait()
        with pytest.raises(ConnectionRefusedError):
            ask(server, '/')


def test_stopping_twice_or_before_the_start_is_harmless() -> None:
    server = ApiServer(echo, section())
    server.stop()
    server.wait()
    server.start()
    for _ in range(2):
        server.stop()
        server.wait()


def test_several_workers_share_a_port() -> None:
    with socket.create_server(('127.0.0.1', 0)) as found:
        port = found.getsockname()[1]
    with (
        serving(echo, port=port, workers=2) as one,
        serving(echo, port=port, workers=2),
    ):
        assert ask(one, '/')[0] == 200


def test_a_port_in_use_is_told_to_the_operator() -> None:
    with serving(echo) as server:
        other = ApiServer(echo, section(port=server.port))
        with pytest.raises(ConfigurationError, match=str(server.port)):
            other.start()


# --- TLS --------------------------------------------------------------------------


def test_https_is_served_with_a_certificate(tmp_path: Path) -> None:
    files = write_certificate(tmp_path)
    context = ssl.create_default_context(cafile=files.certificate)
    options = {
        'certificate_file': str(files.certificate),
        'private_key_file': str(files.key),
    }
    with serving(echo, **options) as server:
        connection = http.client.HTTPSConnection(
            'localhost', server.port, context=context
        )
        with closing(connection):
            connection.request('GET', '/')
            asked = json.loads(connection.getresponse().read())
            assert asked['wsgi.url_scheme'] == 'https'


@pytest.mark.parametrize(
    'options',
    [
        {'certificate_file': '/nonexistent'},
        {'private_key_file': '/nonexistent'},
        {'certificate_file': '/nonexistent', 'private_key_file': '/nonexistent'},
        {'certificate_file': '/dev/null', 'private_key_file': '/dev/null'},
    ],
)
def test_a_wrong_certificate_is_told_to_the_operator(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r'\[api\]'):
        ApiServer(echo, section(**options)).start()
