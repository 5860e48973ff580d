# SPDX-License-Identifier: Apache-2.0
"""Receiver of external events that answers as Nova does, over real HTTP.

Started by ``python -m tests.doubles.nova --port 8774 --record events.jsonl``, it
appends each event of an answered request to the file, one JSON object a line. In a
test, ``with FakeNova() as nova`` serves on a free port until the block ends.
"""

import argparse
import json
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from tests.doubles.threaded_server import ThreadedServer

_PATH: Final = '/os-server-external-events'
_NAME: Final = 'accelerator-request-bound'
_SINCE: Final = (2, 82)
_KEYS: Final = frozenset({'name', 'server_uuid', 'tag', 'status'})
_STATUSES: Final = frozenset({'completed', 'failed', 'in-progress'})


class _Refusal(Exception):
    """Request that Nova rejects as a whole."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Rules:
    """Answers of the receiver. A test may change them at any time."""

    record: Path | None = None  # None: events are only kept in memory
    failures: int = 0  # number of further requests that fail with the status below
    failure: int = 500
    codes: dict[str, int] = field(default_factory=dict)
    """Code per event, by instance or tag. The default is 200."""
    servers: dict[str, str | None] = field(default_factory=dict)
    """Host of each instance; None: the instance has no host."""
    tasks: dict[str, str] = field(default_factory=dict)
    """Running task of an instance."""
    vm_states: dict[str, str] = field(default_factory=dict)
    """State of an instance. The default is active."""
    profiles: dict[str, str] = field(default_factory=dict)
    """Device profile that the flavor of an instance names."""
    moves: list[str] = field(default_factory=list)
    """Uuids of migrations."""
    sees_all: bool = True  # False: the caller is not an administrator
    largest_page: int = 1000


@dataclass(frozen=True)
class Post:
    """Received request, answered or not."""

    headers: Mapping[str, str]
    status: int
    events: list[dict[str, str]]


class FakeNova(ThreadedServer):
    """Receiver that listens once it is created; ``serve`` answers requests."""

    def __init__(self, port: int = 0, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.posts: list[Post] = []
        self.gets: list[str] = []
        self._lock = threading.Lock()
        super().__init__(ThreadingHTTPServer(('127.0.0.1', port), self._handler()))

    @property
    def endpoint(self) -> str:
        return f'{self.url}/v2.1'

    @property
    def events(self) -> list[dict[str, str]]:
        """Events of the requests that were answered with 200 or 207, in order."""
        return [
            event for post in self.posts if post.status < 300 for event in post.events
        ]

    def answer(
        self, path: str, headers: Message, raw: bytes
    ) -> tuple[int, dict[str, Any]]:
        """Return status and JSON body for posted events."""
        events: list[dict[str, str]] = []
        with self._lock:
            try:
                if self.rules.failures:
                    self.rules.failures -= 1
                    raise _Refusal(self.rules.failure, 'Unexpected API Error.')
                events = _read(path, headers, raw)
                status, body = self._judge(events)
            except _Refusal as refusal:
                status = refusal.status
                key = 'itemNotFound' if status == 404 else 'error'
                body = {key: {'code': status, 'message': str(refusal)}}
            self.posts.append(Post(dict(headers.items()), status, events))
            if status < 300:
                self._write(events)
        return status, body

    def show(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return the answer to a GET."""
        address, _, query = path.partition('?')
        if address.endswith('/os-migrations'):
            return 200, {'migrations': [{'uuid': item} for item in self.rules.moves]}
        before, _, uuid = address.partition('/servers')
        if before == address:
            return 200, {'versions': [{'id': 'v2.1', 'status': 'CURRENT'}]}
        if self.rules.failures:
            self.rules.failures -= 1
            return self.rules.failure, {'error': {'message': 'Unexpected API Error.'}}
        if uuid:
            return self._show_server(uuid.removeprefix('/'))
        return self._several(dict(parse_qsl(query)))

    def _show_server(self, uuid: str) -> tuple[int, dict[str, Any]]:
        if uuid not in self.rules.servers or not self.rules.sees_all:
            return 404, {'itemNotFound': {'code': 404, 'message': 'Not found.'}}
        host = self.rules.servers[uuid]
        server = {
            'id': uuid,
            'tenant_id': 'a' * 32,
            'flavor': {'extra_specs': self._list_extra_specs(uuid)},
            'OS-EXT-SRV-ATTR:host': host,
            'OS-EXT-SRV-ATTR:hypervisor_hostname': host,
            'OS-EXT-STS:task_state': self.rules.tasks.get(uuid),
            'OS-EXT-STS:vm_state': self.rules.vm_states.get(uuid, 'active'),
        }
        return 200, {'server': server}

    def _list_extra_specs(self, uuid: str) -> dict[str, str]:
        profile = self.rules.profiles.get(uuid)
        return {} if profile is None else {'accel:device_profile': profile}

    def _several(self, arguments: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if not self.rules.sees_all and 'all_tenants' in arguments:
            text = "Policy doesn't allow os_compute_api:servers:index:get_all_tenants."
            return 403, {'forbidden': {'code': 403, 'message': text}}
        uuids = sorted(self.rules.servers)
        if 'marker' in arguments:
            if arguments['marker'] not in uuids:
                return 400, {'badRequest': {'code': 400, 'message': 'marker'}}
            uuids = uuids[uuids.index(arguments['marker']) + 1 :]
        size = min(int(arguments.get('limit', '1000')), self.rules.largest_page)
        return 200, {'servers': [{'id': uuid, 'name': 's'} for uuid in uuids[:size]]}

    def _judge(self, events: list[dict[str, str]]) -> tuple[int, dict[str, Any]]:
        answers = []
        for event in events:
            code = 200 if event.get('tag') else 400
            for key in (event['server_uuid'], event.get('tag', '')):
                code = self.rules.codes.get(key, code)
            status = event['status'] if code == 200 else 'failed'
            answers.append({**event, 'status': status, 'code': code})
        overall = 200 if all(answer['code'] == 200 for answer in answers) else 207
        return overall, {'events': answers}

    def _write(self, events: list[dict[str, str]]) -> None:
        if self.rules.record is not None:
            with self.rules.record.open('a') as lines:
                for event in events:
                    lines.write(json.dumps(event, sort_keys=True) + '\n')

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        nova = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def handle(self) -> None:
                # The client may close the connection before the next request.
                with suppress(ConnectionError):
                    super().handle()

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get('Content-Length', 0)))
                status, body = nova.answer(self.path, self.headers, raw)
                self._send(status, body)

            def do_GET(self) -> None:
                nova.gets.append(self.path)
                self._send(*nova.show(self.path))

            def _send(self, status: int, body: dict[str, Any]) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing; ``posts`` and the record have the requests."""

        return Handler


def _read(path: str, headers: Message, raw: bytes) -> list[dict[str, str]]:
    """Return the events of a request that fits Nova's schema.

    :raises _Refusal: the request does not fit the schema
    """
    if not path.endswith(_PATH):
        raise _Refusal(404, 'The resource could not be found.')
    if _version(headers) < _SINCE:
        raise _Refusal(400, f'{_NAME} is not one of the events of this microversion.')
    try:
        body = json.loads(raw)
    except ValueError:
        raise _Refusal(400, 'Malformed request body') from None
    events = body.get('events') if isinstance(body, dict) else None
    if not isinstance(events, list) or not events or set(body) != {'events'}:
        raise _Refusal(400, 'Invalid input: events')
    for event in events:
        _check(event)
    return events


def _version(headers: Message) -> tuple[int, ...]:
    service, _, number = headers.get('OpenStack-API-Version', '').partition(' ')
    if service != 'compute':
        return (2, 1)
    return tuple(int(part) for part in number.split('.'))


def _check(event: object) -> None:
    """Check one event."""
    if not isinstance(event, dict) or set(event) - _KEYS:
        raise _Refusal(400, 'Invalid input: additional properties are not allowed')
    if event.get('name') != _NAME or event.get('status') not in _STATUSES:
        raise _Refusal(400, 'Invalid input: name or status')
    try:
        uuid.UUID(event['server_uuid'])
    except (KeyError, ValueError, TypeError, AttributeError):
        raise _Refusal(400, 'Invalid input: server_uuid') from None
    if len(event.get('tag', '')) > 255:
        raise _Refusal(400, 'Invalid input: tag is too long')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--record', type=Path, required=True, help='events, JSON lines')
    parser.add_argument('--fail-first', type=int, default=0, metavar='N')
    arguments = parser.parse_args()
    arguments.record.touch()
    rules = Rules(record=arguments.record, failures=arguments.fail_first)
    try:
        FakeNova(arguments.port, rules).serve()
    except KeyboardInterrupt:
        return


if __name__ == '__main__':
    main()
