# SPDX-License-Identifier: Apache-2.0
"""HTTP service with configured answers; it records its requests."""

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.doubles.threaded_server import ThreadedServer


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: object = None  # bytes are sent unchanged, other values as JSON
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    headers: Message
    body: bytes


class HttpService(ThreadedServer):
    """HTTP service that answers by method and path; status 0 never answers."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[ReceivedRequest] = []
        self.connections = 0
        self.over = threading.Event()
        super().__init__(_Server(self))

    def __exit__(self, *trouble: object) -> None:
        self.over.set()
        super().__exit__(*trouble)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: '_Server'

    def handle(self) -> None:
        self.server.service.connections += 1
        # The client may close the connection before the next request.
        with suppress(ConnectionError):
            super().handle()

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        service = self.server.service
        service.requests.append(
            ReceivedRequest(self.command, self.path, self.headers, raw)
        )
        answer = service.answers.get(f'{self.command} {self.path}', Answer(404))
        if answer.status == 0:
            service.over.wait()
            return
        self._send(answer)

    # http.server requires these names.
    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  # names of the base class

    def _send(self, answer: Answer) -> None:
        body = answer.body
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if answer.status == 204:
            content = b''
        self.send_response(answer.status)
        for name, value in (answer.headers or {}).items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing; the requests are in ``requests``."""


class _Server(ThreadingHTTPServer):
    def __init__(self, service: HttpService) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.service = service
