# SPDX-License-Identifier: Apache-2.0
"""Proxy before an HTTP service that loses answers as a test decides."""

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

import requests

_NOT_PASSED: Final = frozenset({'connection', 'content-length', 'transfer-encoding'})


class LossyProxy:
    """Proxy that passes all requests, and all answers but those to lose."""

    def __init__(self, target: str) -> None:
        """Store the arguments.

        :param target: URL of the service without a path
        """
        self.target = target
        self.lost_requests: list[str] = []
        """Requests whose answer was lost, as ``METHOD path``."""
        self.refused_requests: list[tuple[str, int]] = []
        """Requests that were refused, as ``METHOD path``, and the status."""
        self._losses: list[str] = []
        self._lock = threading.Lock()
        self._server = _Server(self)

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self._server.server_address[1]}'

    def lose(self, method: str, path: str) -> None:
        """Lose the answer to the next request of this method and path."""
        with self._lock:
            self._losses.append(f'{method} {path}')

    def lose_nothing(self) -> None:
        """Forget the losses that have not happened yet."""
        with self._lock:
            self._losses.clear()

    def takes_loss(self, line: str) -> bool:
        """Return True if the answer to this request is to be lost."""
        with self._lock:
            if line not in self._losses:
                return False
            self._losses.remove(line)
            self.lost_requests.append(line)
            return True

    def __enter__(self) -> Self:
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: LossyProxy) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.proxy = proxy


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def _pass(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in {*_NOT_PASSED, 'host'}
        }
        answer = requests.request(
            self.command,
            proxy.target + self.path,
            headers=headers,
            data=body,
            timeout=60,
        )
        if answer.status_code >= 400:
            proxy.refused_requests.append(
                (f'{self.command} {self.path}', answer.status_code)
            )
        if proxy.takes_loss(f'{self.command} {self.path}'):
            return
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() not in _NOT_PASSED:
                self.send_header(name, value)
        if answer.status_code != 204:
            self.send_header('Content-Length', str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    # http.server requires these names.
    do_GET = do_POST = do_PATCH = do_DELETE = _pass  # noqa: N815  # names of the base class

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
