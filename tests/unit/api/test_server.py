# SPDX-License-Identifier: Apache-2.0
"""Tests of the HTTP server: serving, refusing and stopping."""

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from typing import Any, Final

import pytest

from cyborg_lite.api.server import ApiServer
from cyborg_lite.errors.daemons import ConfigurationError
from devstack.launcher.configuration import free_port
from tests.support.api.conversation import ADMIN, Client
from tests.support.api.http_server import (
    BODY_LIMIT,
    build_options,
    check_error_document,
    get,
    open_connection,
    receive_all,
    return_headers,
    send,
    serve,
)

GET: Final = b'GET /v2/%s HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin%s\r\n\r\n'
POST: Final = b'POST /v2/device_profiles HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin'
NEXT: Final = GET % (b'smuggled', b'')
SLOW_HEADER: Final = b'GET /v2 HTTP/1.1\r\nHost: x\r\n'
SLOW_BODY: Final = POST + b'\r\nContent-Length: 9\r\n\r\n['
JSON: Final = {**ADMIN, 'Content-Type': 'application/json'}
PROFILE: Final = b'[{"name": "dp1", "groups": [{"resources:FPGA": 1}]}]'


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
        for method, path, content, status in (
            ('POST', '/v2/device_profiles', PROFILE, 201),
            ('GET', '/v2/device_profiles', None, 200),
            ('GET', '/v2/nothing', None, 404),
            ('HEAD', '/v2/device_profiles', None, 200),
            ('DELETE', '/v2/device_profiles/dp2', None, 404),
        ):
            connection.request(method, path, content, JSON)
            response = connection.getresponse()
            response.read()
            assert response.status == status
            assert connection.sock is client_socket


def test_chunked_body_is_read(client: Client) -> None:
    with (
        serve(client.application) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        chunks = iter([PROFILE[:20], PROFILE[20:]])
        connection.request('POST', '/v2/device_profiles', chunks, JSON)
        assert connection.getresponse().status == 201


def test_pipelined_requests_are_answered_in_order(shared_server: ApiServer) -> None:
    first = GET % (b'devices', b'')
    last = GET % (b'nothing', b'\r\nConnection: close')
    answer = send(shared_server, first + first + last)
    assert re.findall(rb'HTTP/1.1 (\d+)', answer) == [b'200', b'200', b'404']


def test_expected_body_is_requested(shared_server: ApiServer) -> None:
    header = (
        b'\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 9\r\n\r\n'
    )
    with closing(open_connection(shared_server, POST + header)) as connection:
        assert connection.recv(65536) == b'HTTP/1.1 100 Continue\r\n\r\n'
        connection.sendall(b'[1, 2, 3]')
        answer = receive_all(connection)
        assert b'100 Continue' not in answer
        check_error_document(answer)


@pytest.mark.parametrize('part', [SLOW_HEADER, SLOW_BODY, b''])
def test_slow_clients_occupy_no_thread(part: bytes) -> None:
    with serve(return_headers, threads=1) as server, ExitStack() as slow:
        for _ in range(40):
            slow.enter_context(closing(open_connection(server, part)))
        for _ in range(2):
            assert get(server, '/')[0] == 200


def test_headers_of_proxy_reach_application() -> None:
    """The application decides whether it believes them."""
    with serve(return_headers) as server:
        headers = json.loads(get(server, '/', {'X-Forwarded-Proto': 'https'})[2])
    assert headers['HTTP_X_FORWARDED_PROTO'] == 'https'


def test_header_with_underscore_is_dropped() -> None:
    """A proxy that removes X-Roles would forward X_Roles."""
    with serve(return_headers) as server:
        request_headers = {'X_Roles': 'admin', 'X-Project-Id': 'p'}
        headers = json.loads(get(server, '/', request_headers)[2])
    assert headers['HTTP_X_PROJECT_ID'] == 'p'
    assert 'HTTP_X_ROLES' not in headers


def test_unread_body_is_not_next_request(shared_server: ApiServer) -> None:
    """Otherwise a client could inject requests into a shared proxy connection."""
    chunks = b'%x\r\n%s\r\n0\r\n\r\n' % (len(NEXT), NEXT)
    coded = b'Transfer-Encoding: chunked\r\n\r\n' + chunks
    counted = b'Content-Length: %d\r\n\r\n%s' % (len(NEXT), NEXT)
    for body in (coded, counted, b'Content-Length: 3\r\n' + coded):
        answer = send(shared_server, POST + b'\r\nContent-Type: text/plain\r\n' + body)
        assert answer.count(b'HTTP/1.1 ') == 1
        assert b' 415 ' in answer.splitlines()[0]


@pytest.mark.parametrize('coded', [False, True])
def test_body_above_limit_returns_error_document(client: Client, coded: bool) -> None:
    body: Any = b' ' * (BODY_LIMIT + 1)
    with (
        serve(client.application) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        content = iter([body]) if coded else body
        connection.request('POST', '/v2/device_profiles', content, JSON)
        response = connection.getresponse()
        assert response.status == 413
        assert str(BODY_LIMIT) in json.loads(response.read())['errors'][0]['detail']


@pytest.mark.parametrize(
    'declaration',
    [b'Content-Length: 140000\r\n\r\n', b'Content-Length: 9000000\r\n\r\n'],
)
def test_huge_body_is_refused_before_it_arrives(
    shared_server: ApiServer, declaration: bytes
) -> None:
    with closing(
        open_connection(shared_server, POST + b'\r\n' + declaration)
    ) as client:
        assert receive_all(client).startswith(b'HTTP/1.1 413 ')


def test_endless_chunks_are_refused(shared_server: ApiServer) -> None:
    header = POST + b'\r\nTransfer-Encoding: chunked\r\n\r\n1e00000\r\n'
    with closing(open_connection(shared_server, header)) as client:
        client.sendall(b' ' * 2 * BODY_LIMIT)
        assert client.recv(65536).startswith(b'HTTP/1.1 413 ')


class Gate:
    """An application that responds when the test releases it."""

    def __init__(self, content: bytes = b'done') -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self._content = content

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        self.entered.set()
        self.opened.wait()
        start_response('200 OK', [('Content-Length', str(len(self._content)))])
        return [self._content]


def wait_until_refused(server: ApiServer) -> None:
    with suppress(ConnectionRefusedError):
        while True:
            with suppress(ConnectionResetError):
                open_connection(server).close()


def test_stop_waits_for_running_and_waiting_requests() -> None:
    gate = Gate()
    requests = b'GET / HTTP/1.1\r\nHost: x\r\n\r\n' * 2
    with serve(gate, threads=1) as server, ExitStack() as cleanup:
        pool = cleanup.enter_context(ThreadPoolExecutor())
        cleanup.callback(gate.opened.set)
        client = cleanup.enter_context(closing(open_connection(server, requests)))
        gate.entered.wait()
        server.stop()
        waiter = pool.submit(server.wait)
        wait_until_refused(server)
        assert not waiter.done()
        gate.opened.set()
        assert receive_all(client).count(b'done') == 2
        waiter.result()


def test_stop_sends_whole_response() -> None:
    """The client reads after the stop, and the response exceeds the buffers."""
    gate = Gate(b'x' * 2**25)
    with serve(gate) as server:
        with closing(open_connection(server, b'GET / HTTP/1.0\r\n\r\n')) as client:
            gate.entered.wait()
            server.stop()
            gate.opened.set()
            answer = receive_all(client)
        server.wait()
    assert len(answer.partition(b'\r\n\r\n')[2]) == 2**25


@pytest.mark.parametrize('part', [b'', SLOW_HEADER, SLOW_BODY])
def test_stop_closes_connection_without_request(part: bytes) -> None:
    with serve(return_headers) as server:
        assert get(server, '/')[0] == 200
        with closing(open_connection(server, part)) as client:
            server.stop()
            server.wait()
            with pytest.raises(ConnectionRefusedError):
                get(server, '/')
            with suppress(ConnectionResetError):
                assert client.recv(1) == b''


def test_stop_twice_or_before_start_is_harmless() -> None:
    server = ApiServer(return_headers, build_options(), BODY_LIMIT)
    server.stop()
    server.wait()
    server.start()
    for _ in range(2):
        server.stop()
        server.wait()


def test_workers_share_a_port() -> None:
    port = free_port()
    with (
        serve(return_headers, port=port, workers=2) as first,
        serve(return_headers, port=port, workers=2),
    ):
        assert get(first, '/')[0] == 200


def test_port_in_use_raises() -> None:
    with serve(return_headers) as server:
        second = ApiServer(return_headers, build_options(port=server.port), BODY_LIMIT)
        with pytest.raises(ConfigurationError, match=str(server.port)):
            second.start()


@pytest.mark.parametrize('host', ['localhost', '::', '::1'])
def test_host_may_be_name_or_ipv6_address(host: str) -> None:
    if ':' in host and not socket.has_ipv6:
        pytest.skip('this machine has no IPv6')
    with serve(return_headers, host=host) as server:
        target = '127.0.0.1' if host == '::' else host
        with closing(socket.create_connection((target, server.port))) as client:
            client.sendall(b'GET / HTTP/1.0\r\n\r\n')
            assert receive_all(client).startswith(b'HTTP/1.0 200 ')
