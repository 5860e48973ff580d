# SPDX-License-Identifier: Apache-2.0
"""Tests of receiving requests: slow clients, deadlines and limits of connections."""

import http.client
import re
import select
import socket
import ssl
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite.api.request_collector import RequestCollector
from tests.builders.certificate import write_certificate
from tests.support.api.conversation import Client
from tests.support.api.http_server import (
    check_error_document,
    get,
    open_connection,
    receive_all,
    return_headers,
    send,
    serve,
)
from tests.support.wall_clock import STEPS, step_wall_clock

SHORT: Final = 0.05  # seconds
LONG: Final = 600  # seconds; longer than the limit of a test
SLOW_HEADER: Final = b'GET /v2 HTTP/1.1\r\nHost: x\r\n'
SLOW_BODY: Final = b'POST /v2/arqs HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n['
ENDLESS_BODY: Final = SLOW_BODY.replace(b'9', b'99999')
GET: Final = b'GET /v2/%s HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin%s\r\n\r\n'


@pytest.mark.parametrize('part', [SLOW_HEADER, SLOW_BODY, b''])
def test_slow_clients_occupy_no_thread(part: bytes) -> None:
    with serve(return_headers, threads=1) as server, ExitStack() as slow:
        for _ in range(40):
            slow.enter_context(closing(open_connection(server, part)))
        for _ in range(2):
            assert get(server, '/')[0] == 200


@pytest.mark.parametrize(
    ('part', 'missing'), [(SLOW_HEADER, b'header'), (SLOW_BODY, b'body')]
)
def test_slow_request_returns_408(part: bytes, missing: bytes) -> None:
    with (
        serve(return_headers, header_timeout=SHORT, body_timeout=SHORT) as server,
        closing(open_connection(server, part)) as connection,
    ):
        answer = receive_all(connection)
        assert answer.startswith(b'HTTP/1.1 408 ')
        assert b'The %s of the request' % missing in answer
        check_error_document(answer)


def test_header_deadline_is_not_extended_by_lines() -> None:
    with (
        serve(return_headers, header_timeout=SHORT) as server,
        closing(open_connection(server, SLOW_HEADER)) as connection,
    ):
        while not select.select([connection], [], [], SHORT / 10)[0]:
            connection.sendall(b'X: y\r\n')
        assert connection.recv(65536).startswith(b'HTTP/1.1 408 ')


def test_body_deadline_is_not_extended_by_bytes() -> None:
    with (
        serve(return_headers, header_timeout=LONG, body_timeout=SHORT) as server,
        closing(open_connection(server, ENDLESS_BODY)) as connection,
    ):
        while not select.select([connection], [], [], SHORT / 10)[0]:
            connection.sendall(b' ')
        assert connection.recv(65536).startswith(b'HTTP/1.1 408 ')


def test_body_may_arrive_after_header_deadline() -> None:
    with (
        serve(return_headers, header_timeout=SHORT, body_timeout=LONG) as server,
        closing(open_connection(server, SLOW_BODY)) as connection,
    ):
        assert not select.select([connection], [], [], 3 * SHORT)[0]
        connection.sendall(b'1, 2, 3]')
        assert connection.recv(65536).startswith(b'HTTP/1.1 200 ')


def test_idle_connection_has_no_header_deadline() -> None:
    with (
        serve(return_headers, header_timeout=SHORT) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        for _ in range(2):
            connection.request('GET', '/')
            assert connection.getresponse().read()
            select.select([connection.sock], [], [], 3 * SHORT)


def test_kept_connection_needs_one_read_for_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed_reads, searches = [], []
    receive, search = socket.socket.recv, RequestCollector._list_clients

    def count_failed_read(sock: socket.socket, size: int) -> bytes:
        try:
            return receive(sock, size)
        except BlockingIOError:
            failed_reads.append(sock)
            raise

    def count_search(collector: RequestCollector) -> list[Any]:
        searches.append(collector)
        return search(collector)

    monkeypatch.setattr(socket.socket, 'recv', count_failed_read)
    monkeypatch.setattr(RequestCollector, '_list_clients', count_search)
    with (
        serve(return_headers) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        for _ in range(3):
            connection.request('GET', '/')
            assert connection.getresponse().read()
        assert (failed_reads, searches) == ([], [])


@pytest.mark.parametrize('option', ['max_connections', 'max_connections_per_address'])
def test_too_many_connections_return_503(option: str) -> None:
    with serve(return_headers, **{option: 2}) as server:
        with closing(open_connection(server)), closing(open_connection(server)):
            answer = send(server, b'')
            assert answer.startswith(b'HTTP/1.1 503 ')
            check_error_document(answer)
        while send(server, b'GET / HTTP/1.0\r\n\r\n').startswith(b'HTTP/1.1 503 '):
            pass


def test_pipelined_requests_are_answered_in_order(client: Client) -> None:
    first = GET % (b'devices', b'')
    last = GET % (b'nothing', b'\r\nConnection: close')
    with serve(client.application) as server:
        answer = send(server, first + first + last)
    assert re.findall(rb'HTTP/1.1 (\d+)', answer) == [b'200', b'200', b'404']


def test_expected_body_is_requested(client: Client) -> None:
    body = b'[{"name": "dp1", "groups": [{"resources:FPGA": 1}]}]'
    header = (
        b'POST /v2/device_profiles HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n'
        b'X-Auth-Token: admin\r\nX-Roles: admin\r\nConnection: close\r\n'
        b'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(body)
    )
    with (
        serve(client.application) as server,
        closing(open_connection(server, header)) as connection,
    ):
        assert connection.recv(65536) == b'HTTP/1.1 100 Continue\r\n\r\n'
        connection.sendall(body)
        answer = receive_all(connection)
        assert b'100 Continue' not in answer
        assert answer.startswith(b'HTTP/1.1 ')


def test_stalled_body_keeps_response(client: Client) -> None:
    """The response does not need the body, which is too large to be kept."""
    request = (
        b'POST /v2/device_profiles HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin'
        b'\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n['
    )
    with (
        serve(client.application, body_timeout=SHORT) as server,
        closing(open_connection(server, request)) as connection,
    ):
        answer = receive_all(connection)
        assert answer.split()[1][:1] == b'4'
        check_error_document(answer)


@pytest.mark.parametrize('step', STEPS)
def test_wall_clock_step_keeps_connections(
    monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    with (
        serve(return_headers) as server,
        closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection,
    ):
        connection.connect()
        client_socket = connection.sock
        for _ in range(2):
            connection.request('GET', '/')
            assert connection.getresponse().read()
            assert connection.sock is client_socket
            step_wall_clock(monkeypatch, step)


def test_slow_handshake_occupies_no_thread(tmp_path: Path) -> None:
    files = write_certificate(tmp_path)
    context = ssl.create_default_context(cafile=files.certificate)
    options = {
        'certificate_file': str(files.certificate),
        'private_key_file': str(files.key),
    }
    with (
        serve(return_headers, **options) as server,
        closing(open_connection(server, b'\x16\x03')),
    ):
        with closing(open_connection(server, SLOW_HEADER)) as plain:
            assert plain.recv(65536).startswith(b'HTTP/1.1 400 ')
        connection = http.client.HTTPSConnection(
            'localhost', server.port, context=context
        )
        with closing(connection):
            for _ in range(2):
                connection.request('POST', '/', b'x' * 100_000)
                assert connection.getresponse().read()
