# SPDX-License-Identifier: Apache-2.0
"""An HTTP service that says what a test tells it to, and keeps what it was asked."""

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: object = None  # bytes as they are, else JSON
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Message
    body: bytes


class HttpService:
    """Answers each request by its method and path; status 0 never answers."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self.connections = 0
        self.over = threading.Event()
        self._server = _Server(self)

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self._server.server_address[1]}'

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
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: '_Server'

    def handle(self) -> None:
        self.server.service.connections += 1
        # Who asked may be gone before the next request.
        with suppress(ConnectionError):
            super().handle()

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        service = self.server.service
        service.asked.append(Asked(self.command, self.path, self.headers, raw))
        given = service.answers.get(f'{self.command} {self.path}', Answer(404))
        if given.status == 0:
            service.over.wait()
            return
        self._send(given)

    # The names are the library's.
    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

    def _send(self, given: Answer) -> None:
        body = given.body
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if given.status == 204:
            content = b''
        self.send_response(given.status)
        for name, value in (given.headers or {}).items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Silent: what came is in ``asked``."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, service: HttpService) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.service = service
