# SPDX-License-Identifier: Apache-2.0
"""Fake Keystone that knows the configured tokens, over real HTTP.

It issues one service token and validates user tokens, as far as the Keystone
middleware needs.
"""

import json
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.doubles.threaded_server import ThreadedServer

_OWN: Final = 'token-of-the-service-itself'


@dataclass(frozen=True)
class Token:
    """Content of a token, with at most one scope."""

    roles: tuple[str, ...] = ()
    user_id: str = 'a' * 32
    project_id: str | None = None
    domain_id: str | None = None
    system: bool = False

    def document(self) -> dict[str, Any]:
        domain = {'id': 'default', 'name': 'Default'}
        token: dict[str, Any] = {
            'methods': ['password'],
            'user': {'id': self.user_id, 'name': 'u', 'domain': domain},
            'roles': [{'id': role, 'name': role} for role in self.roles],
            'issued_at': '2020-01-01T00:00:00.000000Z',
            'expires_at': '2099-01-01T00:00:00.000000Z',
            'audit_ids': ['x'],
        }
        if self.project_id:
            token['project'] = {'id': self.project_id, 'name': 'p', 'domain': domain}
        if self.domain_id:
            token['domain'] = {'id': self.domain_id, 'name': 'd'}
        if self.system:
            token['system'] = {'all': True}
        return {'token': token}


class FakeKeystone(ThreadedServer):
    """Fake Keystone. ``tokens`` may be changed while it serves."""

    def __init__(self, tokens: dict[str, Token]) -> None:
        self.tokens = {_OWN: Token(('service',), project_id='b' * 32), **tokens}
        self.validated: list[str] = []
        self.is_down = False  # True: every answer is an error
        super().__init__(_Server(self))

    @property
    def url(self) -> str:
        return f'{super().url}/v3'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: '_Server'

    def do_GET(self) -> None:
        keystone = self.server.keystone
        if keystone.is_down:
            self._send(503, {})
        elif not self.path.startswith('/v3/auth/tokens'):
            self._send(200, {'version': self._version()})
        else:
            subject = self.headers['X-Subject-Token']
            keystone.validated.append(subject)
            token = keystone.tokens.get(subject)
            if token is None or self.headers['X-Auth-Token'] != _OWN:
                self._send(404, {})
            else:
                self._send(200, token.document())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        own = self.server.keystone.tokens[_OWN].document()
        own['token']['catalog'] = [self._build_catalog_entry()]
        self._send(201, own, {'X-Subject-Token': _OWN})

    def _build_catalog_entry(self) -> dict[str, Any]:
        url = self.server.keystone.url
        endpoints = [
            {'id': interface, 'interface': interface, 'region': 'r', 'url': url}
            for interface in ('internal', 'public', 'admin')
        ]
        return {'id': 'i', 'type': 'identity', 'name': 'k', 'endpoints': endpoints}

    def _version(self) -> dict[str, Any]:
        link = {'rel': 'self', 'href': self.server.keystone.url}
        return {'id': 'v3.14', 'status': 'stable', 'links': [link], 'media-types': []}

    def _send(
        self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    def __init__(self, keystone: FakeKeystone) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.keystone = keystone
