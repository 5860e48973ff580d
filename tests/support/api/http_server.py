# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of the API with small applications, and clients of plain sockets."""

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, Final

from cyborg_lite.api.server import ApiServer

BODY_LIMIT: Final = 114688  # bytes; the default of the application


def build_options(**options: Any) -> Any:
    """Return the options ``[api]`` of a service on loopback."""
    defaults = {
        'host': '127.0.0.1',
        'port': 0,
        'threads': 4,
        'workers': 1,
        'max_connections': 800,
    }
    return SimpleNamespace(**{**defaults, **options})


@contextmanager
def serve(application: Any, **options: Any) -> Iterator[ApiServer]:
    """Run a server with the application.

    :param options: values that replace those of ``build_options``
    """
    server = ApiServer(application, build_options(**options), BODY_LIMIT)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.wait()


def get(
    server: ApiServer, path: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Send a GET request; return status, headers and body of the response."""
    with closing(http.client.HTTPConnection('127.0.0.1', server.port)) as connection:
        connection.request('GET', path, headers=headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def return_headers(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> list[bytes]:
    """Respond with the request headers as JSON."""
    start_response('200 OK', [('Content-Type', 'application/json')])
    headers = {key: value for key, value in environ.items() if isinstance(value, str)}
    return [json.dumps(headers).encode()]


def send(server: ApiServer, content: bytes) -> bytes:
    """Send bytes, close the sending direction, and return all that comes back."""
    with socket.create_connection(('127.0.0.1', server.port)) as connection:
        connection.sendall(content)
        with suppress(OSError):  # the server may have refused the connection already
            connection.shutdown(socket.SHUT_WR)
        return b''.join(iter(lambda: connection.recv(65536), b''))


def check_error_document(answer: bytes) -> None:
    """Check the error document, which the application and the server both send."""
    head, _, body = answer.partition(b'\r\n\r\n')
    if head.split()[1] < b'400':
        return
    names = head.lower()
    assert b'content-type: application/json' in names
    assert b'x-openstack-request-id: req-' in names
    assert b'openstack-api-maximum-version: ' in names
    assert b'vary: openstack-api-version' in names
    document = json.loads(body)
    if head.split()[1] != b'401':
        assert json.loads(document['error_message'])['faultstring']
        assert document['errors'][0]['detail']
    assert b'Traceback' not in body
    assert b'site-packages' not in body


def open_connection(server: ApiServer, content: bytes = b'') -> socket.socket:
    """Open a connection and send the beginning of a request."""
    connection = socket.create_connection(('127.0.0.1', server.port))
    connection.sendall(content)
    return connection


def receive_all(connection: socket.socket) -> bytes:
    """Return all bytes until the server closes the connection."""
    return b''.join(iter(lambda: connection.recv(65536), b''))
