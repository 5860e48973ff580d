# SPDX-License-Identifier: Apache-2.0
"""Proxies before an HTTP service that fail as a test decides."""

import threading
from collections.abc import Callable, Iterable, Mapping
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
_OBEYED: Final = 'obeyed and lost'
FATES: Final = (*_REFUSALS, 'lost', _OBEYED)
"""Faults of a request, besides ``passed``."""
_NOT_PASSED: Final = {'connection', 'content-length', 'transfer-encoding', 'host'}
_JSON: Final[Mapping[str, str]] = {'Content-Type': 'application/json'}


class HttpProxy(ThreadedServer):
    """Proxy of a service. ``fate`` chooses the fault of each ``METHOD path``."""

    def __init__(
        self, target: str, fate: Callable[[str], str], token: str = ''
    ) -> None:
        """Store the arguments.

        :param target: URL of the service without a path
        :param token: to send in place of that of the client; empty: that of the client
        """
        self.target = target
        self.token = token
        self.fate = fate
        self.requests: list[str] = []
        """Requests as ``METHOD path``."""
        self.lost_requests: list[str] = []
        """Requests that the service obeyed, and whose answer was lost."""
        self.refused_requests: list[tuple[str, int]] = []
        """Requests that the service refused, and the status."""
        super().__init__(_Server(self))


class LossyProxy(HttpProxy):
    """Proxy that passes all requests, and all answers but those to lose."""

    def __init__(self, target: str) -> None:
        super().__init__(target, self._choose_fate)
        self._losses: list[str] = []
        self._lock = threading.Lock()

    def lose(self, method: str, path: str) -> None:
        """Lose the answer to the next request of this method and path."""
        with self._lock:
            self._losses.append(f'{method} {path}')

    def lose_nothing(self) -> None:
        """Forget the losses that have not happened yet."""
        with self._lock:
            self._losses.clear()

    def _choose_fate(self, line: str) -> str:
        with self._lock:
            if line not in self._losses:
                return 'passed'
            self._losses.remove(line)
            return _OBEYED


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
            self._send(*_REFUSALS[fate], _JSON)
            return
        headers = _list_passed(self.headers.items())
        if front.token:
            headers['X-Auth-Token'] = front.token
        answer = requests.request(
            self.command,
            front.target + self.path,
            headers=headers,
            data=body,
            timeout=60,
        )
        if answer.status_code >= 400:
            front.refused_requests.append((line, answer.status_code))
        if fate == _OBEYED:
            front.lost_requests.append(line)
            return
        self._send(
            answer.status_code, answer.content, _list_passed(answer.headers.items())
        )

    # http.server requires these names.
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815  # names of the base class

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing; the requests are in ``requests``."""


def _list_passed(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: text for name, text in headers if name.lower() not in _NOT_PASSED}


class _Server(ThreadingHTTPServer):
    def __init__(self, front: HttpProxy) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.front = front
