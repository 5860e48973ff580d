# SPDX-License-Identifier: Apache-2.0
"""Tests of the HTTP server: serving, refusing and stopping."""

import http.client
import json
import logging
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from oslo_context.context import get_current

from cyborg_lite.api.server import ApiServer
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.rpc.context import RequestContext
from devstack.launcher.configuration import free_port
from tests.builders.certificate import write_certificate
from tests.support.api.conversation import ADMIN, Client
from tests.support.api.http_server import (
    build_options,
    check_error_document,
    get,
    return_headers,
    send,
    serve,
)


@pytest.fixture(scope='module')
def shared_server() -> Iterator[ApiServer]:
    """Start a server for tests that do not change it."""
    with serve(Client().application) as server:
        yield server


def test_application_is_served(client: Client) -> None:
    with serve(client.application) as server:
        status, headers, body = get(server, '/accelerator/v2')
        assert status == 200
        assert headers['Content-Type'] == 'application/json'
        href = json.loads(body)['links'][0]['href']
        assert href == f'http://127.0.0.1:{server.port}/accelerator/v2/'
        assert get(server, '/v2/devices', ADMIN)[0] == 200
        assert get(server, '/v2/devices')[0] == 401


def test_connection_serves_many_requests(client: Client) -> None:
    with (
        serve(client.application) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        connection.connect()
        client_socket = connection.sock
        body = json.dumps([{'name': 'dp1', 'groups': [{'resources:FPGA': 1}]}])
        headers = {**ADMIN, 'Content-Type': 'application/json'}
        for method, path, content, status in (
            ('POST', '/v2/device_profiles', body, 201),
            ('GET', '/v2/device_profiles', None, 200),
            ('GET', '/v2/nothing', None, 404),
            ('HEAD', '/v2/device_profiles', None, 200),
            ('DELETE', '/v2/device_profiles/dp1', None, 204),
            ('DELETE', '/v2/device_profiles/dp1', None, 404),
        ):
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            response.read()
            assert response.status == status
            assert connection.sock is client_socket


def test_chunked_body_is_read(client: Client) -> None:
    with (
        serve(client.application) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        headers = {**ADMIN, 'Content-Type': 'application/json'}
        chunks = iter([b'[{"name": "dp1", "groups": ', b'[{"resources:FPGA": 1}]}]'])
        connection.request('POST', '/v2/device_profiles', chunks, headers)
        assert connection.getresponse().status == 201


def test_header_with_underscore_is_dropped() -> None:
    """A proxy that removes X-Roles would forward X_Roles."""
    with serve(return_headers) as server:
        request_headers = {'X_Roles': 'admin', 'X-Project-Id': 'p'}
        headers = json.loads(get(server, '/', request_headers)[2])
    assert headers['HTTP_X_PROJECT_ID'] == 'p'
    assert 'HTTP_X_ROLES' not in headers


POST = b'POST /v2/device_profiles HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin'
NEXT = b'GET /v2/smuggled HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\n\r\n'


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
def test_invalid_request_line_returns_400(
    shared_server: ApiServer, line: bytes
) -> None:
    answer = send(shared_server, line + b'\r\nHost: x\r\nConnection: close\r\n\r\n')
    assert answer.split()[1][:1] in (b'2', b'4') or b'505' in answer
    check_error_document(answer)
    assert get(shared_server, '/v2')[0] == 200


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
def test_invalid_header_returns_400(shared_server: ApiServer, header: bytes) -> None:
    request = POST + b'\r\n' + header + b'\r\nConnection: close\r\n\r\nzz\r\n'
    answer = send(shared_server, request)
    # RFC 9112 allows 501 for an unknown transfer coding.
    status = answer.split()[1]
    assert status[:1] == b'4' or status == b'501'
    check_error_document(answer)
    assert get(shared_server, '/v2')[0] == 200


def test_unread_body_is_not_next_request(client: Client) -> None:
    """Otherwise a client could inject requests into a shared proxy connection."""
    chunks = b'%x\r\n%s\r\n0\r\n\r\n' % (len(NEXT), NEXT)
    coded = b'Transfer-Encoding: chunked\r\n\r\n' + chunks
    counted = b'Content-Length: %d\r\n\r\n%s' % (len(NEXT), NEXT)
    with serve(client.application) as server:
        for body in (coded, counted, b'Content-Length: 3\r\n' + coded):
            refused = b'\r\nContent-Type: text/plain\r\n' + body
            answer = send(server, POST + refused)
            assert answer.count(b'HTTP/1.1 ') == 1
            assert b' 415 ' in answer.splitlines()[0]


@pytest.mark.parametrize('coded', [False, True])
@pytest.mark.parametrize(
    ('version_header', 'status'), [({}, 413), ({'OpenStack-API-Version': 'x'}, 406)]
)
def test_oversized_body_client_reads_response(
    client: Client, coded: bool, version_header: dict[str, str], status: int
) -> None:
    body: Any = iter([b' ' * 2**20] * 20) if coded else b' ' * (20 * 2**20)
    with (
        serve(client.application) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        headers = {**ADMIN, 'Content-Type': 'application/json', **version_header}
        connection.request('POST', '/v2/device_profiles', body, headers)
        response = connection.getresponse()
        assert response.status == status
        assert json.loads(response.read())['errors']


@pytest.mark.parametrize(
    'target',
    [
        b'//[/v2',
        b'//[::1/v2',
        b'//]/v2',
        b'//[x]/v2',
        b'//[v1.]/v2',
        b'http://[/v2',
        b'http://[::g]/v2',
        b'http://\xe2\x84\x80/v2',
        b'//\xe2\x84\x80/v2',
    ],
)
@pytest.mark.parametrize('method', [b'GET', b'OPTIONS', b'CONNECT'])
def test_malformed_target_returns_4xx(
    shared_server: ApiServer, method: bytes, target: bytes
) -> None:
    line = b'%s %s HTTP/1.1\r\nHost: x\r\n\r\n' % (method, target)
    answer = send(shared_server, line)
    assert answer.split()[1] in (b'400', b'405')
    check_error_document(answer)


@pytest.mark.parametrize('length', [b'+1', b'1_0', b'0x1', b'1 1', b'1, 1'])
def test_ambiguous_content_length_returns_400(
    shared_server: ApiServer, length: bytes
) -> None:
    answer = send(shared_server, POST + b'\r\nContent-Length: %s\r\n\r\n' % length)
    assert answer.startswith(b'HTTP/1.1 400 ')


def test_large_header_returns_431(shared_server: ApiServer) -> None:
    answer = send(
        shared_server, b'GET /v2 HTTP/1.1\r\nHost: x\r\n' + b'X: y\r\n' * 12_000
    )
    assert answer.startswith(b'HTTP/1.1 431 ')
    check_error_document(answer)


def test_invalid_request_log_has_own_request_id(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def identify(environ: dict[str, Any], start_response: Any) -> Any:
        RequestContext(user_id='u' * 32, project_id='p' * 32)
        return return_headers(environ, start_response)

    contexts: list[Any] = []

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            contexts.append(get_current())

    logger, recorder = logging.getLogger('cyborg_lite.api.server'), Recorder()
    with serve(identify, threads=1) as server, caplog.at_level(logging.INFO):
        get(server, '/')
        logger.addHandler(recorder)
        try:
            answer = send(server, b'GET //[/v2 HTTP/1.1\r\n\r\n')
        finally:
            logger.removeHandler(recorder)
    (context,) = contexts
    assert (context.user_id, context.project_id) == (None, None)
    assert context.request_id.encode() in answer


# --- start and stop ---------------------------------------------------------------


class Gate:
    """An application that responds when the test releases it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        self.entered.set()
        self.opened.wait()
        start_response('200 OK', [('Content-Length', '4')])
        return [b'done']


def test_stop_waits_for_running_request() -> None:
    gate = Gate()
    server = ApiServer(gate, build_options())
    server.start()
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(get, server, '/')
        gate.entered.wait()
        server.stop()
        waiter = pool.submit(server.wait)
        assert not waiter.done()
        gate.opened.set()
        assert answer.result()[2] == b'done'
        waiter.result()


def test_stop_closes_idle_connection() -> None:
    with (
        serve(return_headers) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        connection.request('GET', '/')
        connection.getresponse().read()
        server.stop()
        server.wait()
        with pytest.raises(ConnectionRefusedError):
            get(server, '/')


def test_stop_twice_or_before_start_is_harmless() -> None:
    server = ApiServer(return_headers, build_options())
    server.stop()
    server.wait()
    server.start()
    for _ in range(2):
        server.stop()
        server.wait()
    with pytest.raises(ConnectionRefusedError):
        get(server, '/')


def test_workers_share_a_port() -> None:
    port = free_port()
    with (
        serve(return_headers, port=port, workers=2) as first,
        serve(return_headers, port=port, workers=2),
    ):
        assert get(first, '/')[0] == 200


def test_port_in_use_raises() -> None:
    with serve(return_headers) as server:
        second = ApiServer(return_headers, build_options(port=server.port))
        with pytest.raises(ConfigurationError, match=str(server.port)):
            second.start()


# --- TLS --------------------------------------------------------------------------


def test_https_with_certificate(tmp_path: Path) -> None:
    files = write_certificate(tmp_path)
    context = ssl.create_default_context(cafile=files.certificate)
    options = {
        'certificate_file': str(files.certificate),
        'private_key_file': str(files.key),
    }
    with serve(return_headers, **options) as server:
        connection = http.client.HTTPSConnection(
            'localhost', server.port, context=context
        )
        with closing(connection):
            connection.request('GET', '/')
            headers = json.loads(connection.getresponse().read())
            assert headers['wsgi.url_scheme'] == 'https'


@pytest.mark.parametrize(
    'options',
    [
        {'certificate_file': '/nonexistent'},
        {'private_key_file': '/nonexistent'},
        {'certificate_file': '/nonexistent', 'private_key_file': '/nonexistent'},
        {'certificate_file': '/dev/null', 'private_key_file': '/dev/null'},
    ],
)
def test_invalid_certificate_raises(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r'\[api\]'):
        ApiServer(return_headers, build_options(**options)).start()
