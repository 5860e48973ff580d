# SPDX-License-Identifier: Apache-2.0
"""Proxy before a Placement or Keystone that fails as a test decides."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import requests

from tests.doubles.threaded_server import ThreadedServer

_CONFLICT: Final = b'{"errors": [{"code": "placement.concurrent_update"}]}'
_REFUSALS: Final = {
    '409': (409, _CONFLICT),
    '409 of a proxy': (409, b'<html>Conflict</html>'),
    '500': (500, b'<html>Internal Server Error</html>'),
    '503': (503, b'{"errors": [{"title": "Service Unavailable"}]}'),
}
FATES: Final = (*_REFUSALS, 'lost', 'obeyed and lost')
"""Faults of a request, besides ``passed``."""
_TOKEN: Final = 'X-Subject-Token'  # in an answer of Keystone
_NO_HEADERS: Final[Mapping[str, str]] = {}
_PASSED_ON: Final = ('X-Auth-Token', 'OpenStack-API-Version', 'Content-Type')


class PlacementProxy(ThreadedServer):
    """Proxy of a Placement. ``fate`` chooses the fault of each ``METHOD path``."""

    def __init__(
        self, target: str, fate: Callable[[str], str], token: str = ''
    ) -> None:
        """Store the arguments.

        :param target: URL of Placement, or of Keystone
        :param token: to send in place of that of the client; empty: that of the client
        """
        self.target = target
        self.token = token
        self.fate = fate
        self.requests: list[str] = []
        """Requests as ``METHOD path``."""
        super().__init__(_Server(self))


class _Handler(BaseHTTPRequestHandler):
    server: '_Server'

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def _handle(self) -> None:
        front = self.server.front
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        line = f'{self.command} {self.path}'
        fate = front.fate(line)
        front.requests.append(line)
        if fate == 'lost':
            return
        if fate in _REFUSALS:
            self._send(*_REFUSALS[fate])
            return
        headers = {k: v for k, v in self.headers.items() if k in _PASSED_ON}
        if front.token:
            headers['X-Auth-Token'] = front.token
        answer = requests.request(
            self.command,
            front.target + self.path,
            headers=headers,
            data=body,
            timeout=60,
        )
        if fate == 'passed':
            self._send(answer.status_code, answer.content, answer.headers)

    # http.server requires these names.
    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815  # names of the base class

    def _send(
        self, status: int, content: bytes, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        self.send_response(status)
        if _TOKEN in headers:
            self.send_header(_TOKEN, headers[_TOKEN])
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        if status != 204:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing; the requests are in ``requests``."""


class _Server(ThreadingHTTPServer):
    def __init__(self, front: PlacementProxy) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.front = front
