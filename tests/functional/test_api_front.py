# SPDX-License-Identifier: Apache-2.0
"""Hostile clients of the API: without a proxy, behind HAProxy and behind nginx.

A hostile client sends something and then nothing. It has another address than the
client that must be answered. A stopped server answers no client for at least 10 s.
"""

import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import waitress

from tests.servers.api_front import PROXIES, Front, start_proxy, start_service

LIMIT: Final = 5.0  # seconds; an undisturbed answer takes some milliseconds
MEMORY: Final = 200  # MB
COUNTS: Final = (40, 120, 500)
ADDRESSES: Final = 8  # each has less connections than a proxy allows

GET: Final = b'GET /v2 HTTP/1.1\r\nHost: x\r\n'
POST: Final = b'POST /v2/device_profiles HTTP/1.1\r\nHost: x\r\nX-Auth-Token: a\r\n'
CHUNKED: Final = POST + b'Transfer-Encoding: chunked\r\n\r\n'
NEXT: Final = b'GET /v2/smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
CHUNKS: Final = b'%x\r\n%s\r\n0\r\n\r\n' % (len(NEXT), NEXT)
END: Final = b'Connection: close\r\n\r\n'

KINDS: Final = {
    'nothing': b'',
    'slow header': GET,
    'slow body': POST + b'Content-Length: 9\r\n\r\n[',
    'body of 140,000 bytes': POST + b'Content-Length: 140000\r\n\r\n[',
    'body of 9,000,000 bytes': POST + b'Content-Length: 9000000\r\n\r\n[',
    'two lengths': POST + b'Content-Length: 9\r\nContent-Length: 8\r\n\r\n',
    'space after name': POST + b'Content-Length : 100\r\n\r\n',
    'empty line in a chunk': CHUNKED + b'9\r\n[\r\n\r\n',
    'chunk of 30 MiB': CHUNKED + b'1e00000\r\n' + b' ' * 2**16,
    'expectation without body': GET + b'Expect: 100-continue\r\n\r\n',
    'answers unread': b'GET /v2/openapi.json HTTP/1.1\r\nHost:\r\n\r\n' * 200,
}

# RFC 9112 and RFC 9110 forbid them. The answer is an error, or the request is ignored.
MALFORMED: Final = {
    'folded first field': b'GET /v2 HTTP/1.1\r\n X: y\r\nHost: x\r\n' + END,
    'tab before first field': b'GET /v2 HTTP/1.1\r\n\tHost: x\r\n' + END,
    'field without colon': GET + b'no colon\r\n' + END,
    'field without name': GET + b': x\r\n' + END,
    'space in a name': GET + b'a b: x\r\n' + END,
    'NUL in a name': GET + b'X\0: a\r\n' + END,
    'NUL in a value': GET + b'X: a\0b\r\n' + END,
    'CR in a value': GET + b'X: a\rb\r\n' + END,
    'no Host': b'GET /v2 HTTP/1.1\r\n' + END,
    'two Hosts': GET + b'Host: y\r\n' + END,
    'Host with a path': b'GET /v2 HTTP/1.1\r\nHost: a/b\r\n' + END,
    'bad method': b'G(T /v2 HTTP/1.1\r\nHost: x\r\n' + END,
    'lower case method': b'get /v2 HTTP/1.1\r\nHost: x\r\n' + END,
    'space in the target': b'GET /v2 x HTTP/1.1\r\nHost: x\r\n' + END,
    'target not in ASCII': b'GET /v2/\xff HTTP/1.1\r\nHost: x\r\n' + END,
    'lower case version': b'GET /v2 http/1.1\r\nHost: x\r\n' + END,
    'address without end': b'GET http://[/v2 HTTP/1.1\r\nHost: x\r\n' + END,
    'HTTP/2': b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'TLS without TLS': b'\x16\x03\x01\x02\x00\x01\r\n\r\n',
    'line of 70,000 bytes': b'GET /v2/'
    + b'x' * 70000
    + b' HTTP/1.1\r\nHost: x\r\n'
    + END,
    'field of 70,000 bytes': GET + b'X: ' + b'x' * 70000 + b'\r\n' + END,
    '12,000 fields': GET + b'X: y\r\n' * 12000 + END,
    'two lengths': POST + b'Content-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    'list of lengths': POST + b'Content-Length: 1, 2\r\n\r\nab',
    'space after length': POST + b'Content-Length : 100\r\n\r\n',
    'length with sign': POST + b'Content-Length: +1\r\n\r\na',
    'length with underscore': POST + b'Content-Length: 1_0\r\n\r\n0123456789',
    'hexadecimal length': POST + b'Content-Length: 0x1\r\n\r\na',
    'negative length': POST + b'Content-Length: -1\r\n\r\na',
    'length of 20 digits': POST + b'Content-Length: ' + b'9' * 20 + b'\r\n\r\na',
    'length of 5,000 digits': POST + b'Content-Length: ' + b'9' * 5000 + b'\r\n\r\na',
    'vertical tab before length': POST + b'Content-Length: \x0b1\r\n\r\na',
    'length and coding': (
        POST + b'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n' + CHUNKS
    ),
    'length and vertical tab before coding': (
        POST + b'Content-Length: 4\r\nTransfer-Encoding: \x0bchunked\r\n\r\n' + CHUNKS
    ),
    'space after coding': POST + b'Transfer-Encoding : chunked\r\n\r\n' + CHUNKS,
    'unknown coding': POST + b'Transfer-Encoding: xchunked\r\n\r\n' + CHUNKS,
    'chunked is not last': POST + b'Transfer-Encoding: chunked, x\r\n\r\n' + CHUNKS,
    'chunked twice': CHUNKED[:-2] + b'Transfer-Encoding: chunked\r\n\r\n' + CHUNKS,
    'identity and length': (
        POST + b'Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nab' + NEXT
    ),
    'coding in HTTP/1.0': (
        CHUNKED.replace(b'1.1', b'1.0')[:-2]
        + b'Connection: keep-alive\r\n\r\n'
        + CHUNKS
    ),
    'signed chunk': CHUNKED + b'+5\r\nabcde\r\n0\r\n\r\n',
    'prefixed chunk': CHUNKED + b'0x5\r\nabcde\r\n0\r\n\r\n',
    'chunk without end': CHUNKED + b'5\r\nabcdeXX0\r\n\r\n' + NEXT,
    'line feed in an extension': CHUNKED + b'5;a\nb\r\nabcde\r\n0\r\n\r\n' + NEXT,
}


@pytest.fixture(scope='module')
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    front = start_service(tmp_path_factory.mktemp('service'))
    yield front
    [child] = front.children
    assert child.end() == 0
    assert 'Traceback' not in child.log.read_text(errors='replace')


@pytest.fixture(scope='module', params=['service', *PROXIES])
def front(
    request: pytest.FixtureRequest,
    service: Front,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Front]:
    """Yield the service without a proxy, and each proxy in front of it."""
    if request.param == 'service':
        yield service
        return
    directory = tmp_path_factory.mktemp(request.param)
    proxy = start_proxy(request.param, directory, service.port)
    [child] = proxy.children
    child.until(proxy.is_ready)
    yield proxy
    child.end()


def attack(
    front: Front, number: int, content: bytes, tls: bool = False
) -> socket.socket:
    """Connect and send as much as the front accepts without waiting."""
    source = (f'127.0.0.{2 + number % ADDRESSES}', 0)
    port = front.tls_port if tls else front.port
    client = socket.create_connection(('127.0.0.1', port), source_address=source)
    client.setblocking(False)
    with suppress(OSError):
        client.send(content)
    return client


def check_others(
    front: Front, content: bytes, tls: bool = False, counts: tuple[int, ...] = COUNTS
) -> None:
    """Check that another client is answered while hostile connections are open."""
    before = front.read_memory()
    with ExitStack() as hostile:
        opened = 0
        for count in counts:
            for number in range(opened, count):
                client = attack(front, number, content, tls)
                hostile.enter_context(closing(client))
            opened = count
            started = time.monotonic()
            assert front.ask() == 200
            assert time.monotonic() - started < LIMIT
    assert front.read_memory() - before < MEMORY


@pytest.mark.parametrize('kind', KINDS)
def test_hostile_clients_delay_no_other_client(front: Front, kind: str) -> None:
    # The service alone answers all requests of one read, and CPU time is limited.
    is_costly = (front.name, kind) == ('service', 'answers unread')
    check_others(front, KINDS[kind], counts=COUNTS[:1] if is_costly else COUNTS)


def test_stalled_handshakes_delay_no_other_client(front: Front) -> None:
    if not front.tls_port:
        pytest.skip('the service has no TLS')
    check_others(front, b'\x16\x03', tls=True)


def exchange(front: Front, content: bytes, *, ends: bool = True) -> bytes:
    """Send bytes and return the answers.

    :param ends: False: the client does not say that it sends no more
    """
    with closing(socket.create_connection(('127.0.0.1', front.port))) as client:
        answer = b''
        with suppress(OSError):
            client.sendall(content)
            if ends:
                client.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while data := client.recv(65536):
                answer += data
        return answer


@pytest.mark.parametrize('kind', MALFORMED)
def test_malformed_request_is_refused_once(front: Front, kind: str) -> None:
    answer = exchange(front, MALFORMED[kind])
    statuses = [int(code) for code in re.findall(rb'HTTP/1\.\d (\d+) ', answer)]
    # No answer: the connection ends. 501 and 505 are for what HTTP allows to lack.
    assert all(400 <= code < 500 or code in (501, 505) for code in statuses), answer
    assert b'smuggled' not in answer
    assert len(statuses) <= 2  # the rest of a malformed request may be refused, too
    assert front.ask() == 200


@pytest.mark.parametrize('size', [114688, 131000, 131073, 2**20])
@pytest.mark.parametrize('coded', [False, True])
def test_body_is_read_or_refused(front: Front, size: int, coded: bool) -> None:
    body = b' ' * size
    header = POST + b'Content-Type: application/json\r\nConnection: close\r\n'
    if coded:
        content = b'Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n' % (
            size,
            body,
        )
    else:
        content = b'Content-Length: %d\r\n\r\n%s' % (size, body)
    answer = exchange(front, header + content, ends=False)
    # The server without a proxy may close the connection while the client sends.
    if answer or front.name != 'service':
        expected = b'4' if size == 114688 else b'413'
        assert answer.split()[1].startswith(expected)
    assert front.ask() == 200


@pytest.mark.parametrize('name', PROXIES)
def test_proxy_waits_longer_for_list_by_instance(name: str, tmp_path: Path) -> None:
    """Divide all times of the proxy by twenty."""
    released = threading.Event()

    # Any: parts of WSGI.
    def application(environ: Any, start_response: Any) -> list[bytes]:
        if environ['PATH_INFO'] != '/healthcheck/ready':
            released.wait()
        start_response('200 OK', [('Content-Length', '2')])
        return [b'{}']

    upstream = waitress.create_server(application, listen='127.0.0.1:0', threads=8)
    threading.Thread(target=upstream.run, daemon=True).start()
    seconds = {r'\b60s': '3s', r'\b10s': '500ms', r'\b315s': '60s'}
    proxy = start_proxy(name, tmp_path, int(upstream.effective_port), seconds)
    [child] = proxy.children
    try:
        child.until(proxy.is_ready)
        with ThreadPoolExecutor() as pool:
            path = '/v2/accelerator_requests?instance=x'
            slow_answer = pool.submit(proxy.ask, path)
            assert proxy.ask('/v2/devices') == 504
            assert not slow_answer.done()
            released.set()
            assert slow_answer.result() == 200
    finally:
        released.set()
        child.end()
