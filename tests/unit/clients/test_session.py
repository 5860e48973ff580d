# SPDX-License-Identifier: Apache-2.0
"""Tests of requests to other services and of the errors they raise."""

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TypeAlias

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext

from cyborg_lite import conf as configuration
from cyborg_lite.clients.session import Remote, connect
from cyborg_lite.conf import placement as section
from cyborg_lite.errors.daemons import (
    ConfigurationError,
    RemoteError,
    ServiceUnavailable,
)
from tests.doubles.http_service import Answer, HttpService
from tests.support.wall_clock import STEPS, step_wall_clock

ConnectRemote: TypeAlias = Callable[..., Remote]


@pytest.fixture(autouse=True)
def _add_answer(service: HttpService) -> None:
    service.answers['GET /thing'] = Answer(body={'a': 1})


@pytest.fixture
def connect_remote(tmp_path: Path) -> ConnectRemote:
    """Return a factory of clients configured by a file, as plugins read own options."""

    def connect_remote(**options: object) -> Remote:
        file = tmp_path / 'service.conf'
        lines = [f'{name} = {value}' for name, value in options.items()]
        file.write_text('\n'.join(['[placement]', 'connect_retries = 0', *lines]))
        remote = connect(parse(file), section.GROUP, 'Placement', '1.28')
        assert remote is not None
        return remote

    return connect_remote


def parse(*files: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf.register_opts(section.OPTIONS, group=section.GROUP)
    conf([], default_config_files=[str(file) for file in files])
    return conf


@pytest.fixture
def remote(connect_remote: ConnectRemote, service: HttpService) -> Remote:
    return connect_remote(endpoint_override=service.url, timeout=5)


def test_connect_empty_section_returns_none() -> None:
    assert connect(parse(), section.GROUP, 'Placement', '1.28') is None


@pytest.mark.parametrize(
    ('options', 'token'),
    [
        ({'endpoint_override': '{url}'}, 'admin'),
        ({'auth_type': 'none', 'endpoint_override': '{url}'}, 'admin'),
        ({'auth_type': 'admin_token', 'endpoint': '{url}', 'token': 'a:b'}, 'a:b'),
    ],
)
def test_send_uses_token_of_auth_type(
    connect_remote: ConnectRemote,
    service: HttpService,
    options: dict[str, str],
    token: str,
) -> None:
    values = {name: text.format(url=service.url) for name, text in options.items()}
    connect_remote(**values).send('GET', '/thing')
    (request,) = service.requests
    assert request.headers['X-Auth-Token'] == token
    assert request.headers['OpenStack-API-Version'] == 'placement 1.28'


@pytest.mark.parametrize(
    ('auth_type', 'words'), [('password', 'auth_url'), ('nonsense', 'nonsense')]
)
def test_connect_incomplete_credentials_raises(
    connect_remote: ConnectRemote, auth_type: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf'\[placement\].*{words}'):
        connect_remote(auth_type=auth_type)


def test_send_forwards_global_request_id(remote: Remote, service: HttpService) -> None:
    request_id = 'req-7c9e6679-7425-40de-944b-e07fc1f90ae7'
    RequestContext(global_request_id=request_id)
    remote.send('GET', '/thing')
    assert service.requests[0].headers['X-OpenStack-Request-ID'] == request_id


def test_send_reuses_connection(remote: Remote, service: HttpService) -> None:
    for _ in range(5):
        remote.send('GET', '/thing')
    assert (len(service.requests), service.connections) == (5, 1)


@pytest.mark.parametrize('status', [500, 502, 503, 504])
def test_send_server_error_raises_service_unavailable(
    remote: Remote, service: HttpService, status: int
) -> None:
    service.answers['GET /thing'] = Answer(status)
    with pytest.raises(ServiceUnavailable, match='Placement does not answer'):
        remote.send('GET', '/thing')


@pytest.mark.parametrize('place', ['head', 'body'])
def test_send_dripping_answer_has_a_deadline(
    connect_remote: ConnectRemote, place: str
) -> None:
    with socket.create_server(('127.0.0.1', 0)) as listener:
        drip = threading.Thread(target=drip_answer, args=(listener, place))
        drip.start()
        url = f'http://127.0.0.1:{listener.getsockname()[1]}'
        remote = connect_remote(endpoint_override=url, timeout=0.5)
        with pytest.raises(ServiceUnavailable):
            remote.send('GET', '/thing')
        drip.join()


def drip_answer(listener: socket.socket, place: str) -> None:
    """Send an answer in which bytes are never far apart."""
    connection, _ = listener.accept()
    head = b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n'
    with connection, suppress(OSError):
        connection.recv(65536)
        connection.sendall(head)
        if place == 'head':
            for number in range(20):
                connection.sendall(f'X-{number}: a\r\n'.encode())
                time.sleep(0.1)
        connection.sendall(b'\r\n')
        for _ in range(20):
            connection.sendall(b' ')
            if place == 'body':
                time.sleep(0.1)


def test_send_without_answer_raises_service_unavailable(
    connect_remote: ConnectRemote, service: HttpService
) -> None:
    service.answers['GET /thing'] = Answer(0)
    for url in (service.url, 'http://127.0.0.1:1'):
        remote = connect_remote(endpoint_override=url, timeout=0.1)
        with pytest.raises(ServiceUnavailable, match='Placement'):
            remote.send('GET', '/thing')


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ({'errors': [{'title': 'Bad', 'detail': 'No such\n\n trait X'}]}, 'trait X'),
        ({'itemNotFound': {'code': 404, 'message': 'No server'}}, 'No server'),
        ({'error': {'message': 'Not yours'}}, 'Not yours'),
        ({'odd': 1}, 'Not Found'),
        ({'errors': 5}, 'Not Found'),
        (['odd'], 'Not Found'),
        (b'<html>plain</html>', 'Not Found'),
    ],
)
def test_send_client_error_raises_with_reason(
    remote: Remote, service: HttpService, body: object, reason: str
) -> None:
    service.answers['GET /thing'] = Answer(404, body)
    with pytest.raises(RemoteError, match=f'Placement answered 404: .*{reason}'):
        remote.send('GET', '/thing')


def test_send_client_error_truncates_reason(
    remote: Remote, service: HttpService
) -> None:
    service.answers['GET /thing'] = Answer(400, {'error': {'message': 'x' * 9999}})
    with pytest.raises(RemoteError) as raised:
        remote.send('GET', '/thing')
    assert len(raised.value.text) < 300


@pytest.fixture
def authenticated_remote(connect_remote: ConnectRemote, service: HttpService) -> Remote:
    """Return a client whose service acts as Keystone and as Placement."""
    remote = connect_remote(
        auth_type='password',
        auth_url=f'{service.url}/v3',
        username='cyborg',
        password='s3cr3t',
        user_domain_id='default',
        project_name='service',
        project_domain_id='default',
    )
    link = {'interface': 'internal', 'region': 'R', 'region_id': 'R', 'id': '1'}
    catalogue = [
        {
            'type': 'placement',
            'name': 'placement',
            'id': '2',
            'endpoints': [link | {'url': f'{service.url}/placement'}],
        }
    ]
    token = {
        'methods': ['password'],
        'expires_at': '2999-01-01T00:00:00Z',
        'issued_at': '2026-01-01T00:00:00Z',
        'user': {'id': 'u', 'name': 'cyborg', 'domain': {'id': 'd', 'name': 'D'}},
        'catalog': catalogue,
    }
    service.answers['POST /v3/auth/tokens'] = Answer(
        201, {'token': token}, {'X-Subject-Token': 'from-keystone'}
    )
    links = [{'rel': 'self', 'href': f'{service.url}/v3/'}]
    version = {'id': 'v3.14', 'status': 'stable', 'links': links}
    service.answers['GET /v3'] = Answer(200, {'version': version})
    service.answers['GET /placement/thing'] = Answer(body={'a': 1})
    return remote


def test_send_with_password_uses_catalogue_endpoint(
    authenticated_remote: Remote, service: HttpService
) -> None:
    for _ in range(2):
        assert authenticated_remote.send('GET', '/thing').json() == {'a': 1}
    paths = [request.path for request in service.requests]
    assert paths.count('/v3/auth/tokens') == 1
    assert paths[-2:] == ['/placement/thing'] * 2
    assert service.requests[-1].headers['X-Auth-Token'] == 'from-keystone'


def test_send_rejected_credentials_name_keystone(
    authenticated_remote: Remote, service: HttpService
) -> None:
    service.answers['POST /v3/auth/tokens'] = Answer(
        401, {'error': {'code': 401, 'message': 'Please log in.'}}
    )
    with pytest.raises(RemoteError, match='Keystone answered 401: ') as raised:
        authenticated_remote.send('GET', '/thing')
    assert 's3cr3t' not in raised.value.text


def test_send_failing_keystone_raises_service_unavailable(
    authenticated_remote: Remote, service: HttpService
) -> None:
    service.answers['POST /v3/auth/tokens'] = Answer(503)
    with pytest.raises(ServiceUnavailable, match='Keystone does not answer'):
        authenticated_remote.send('GET', '/thing')


def test_send_outage_of_keystone_is_one_warning(
    authenticated_remote: Remote, service: HttpService, caplog: pytest.LogCaptureFixture
) -> None:
    levels = dict(item.split('=') for item in configuration.LOG_LEVELS)
    for name, level in levels.items():
        caplog.set_level(logging.getLevelName(level.replace('WARN', 'WARNING')), name)
    service.answers['GET /v3'] = service.answers['POST /v3/auth/tokens'] = Answer(503)
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            authenticated_remote.send('GET', '/thing')
    warnings = [item for item in caplog.records if item.levelno >= logging.WARNING]
    assert [item.name for item in warnings] == ['cyborg_lite.clients.session']


def test_send_missing_catalogue_entry_raises_service_unavailable(
    authenticated_remote: Remote, service: HttpService
) -> None:
    answer = service.answers['POST /v3/auth/tokens']
    assert isinstance(answer.body, dict)
    answer.body['token']['catalog'] = []
    with pytest.raises(ServiceUnavailable, match='Placement'):
        authenticated_remote.send('GET', '/thing')


@pytest.mark.parametrize('step', STEPS)
def test_send_after_clock_step_does_not_wait(
    authenticated_remote: Remote,
    service: HttpService,
    monkeypatch: pytest.MonkeyPatch,
    step: float,
) -> None:
    other_version = authenticated_remote.with_microversion('1.30')
    step_wall_clock(monkeypatch, step)
    for remote in (authenticated_remote, other_version):
        assert remote.send('GET', '/thing').json() == {'a': 1}


def test_send_uses_proxy_of_environment(
    connect_remote: ConnectRemote, service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('http_proxy', service.url)
    monkeypatch.delenv('no_proxy', raising=False)
    remote = connect_remote(endpoint_override='http://placement.invalid', timeout=5)
    for _ in range(2):
        with pytest.raises(RemoteError):
            remote.send('GET', '/absent')
    assert len(service.requests) == 2


def test_send_redirect_is_followed(remote: Remote, service: HttpService) -> None:
    location = {'Location': f'{service.url}/thing'}
    service.answers['GET /old'] = Answer(302, headers=location)
    assert remote.send('GET', '/old').json() == {'a': 1}


@pytest.mark.parametrize('content', [b'<html>Sign in</html>', b'{"a": [1, ', b'[1]'])
def test_read_content_without_object_raises(
    remote: Remote, service: HttpService, content: bytes
) -> None:
    """A proxy answers with a page of its own, or cuts the answer of the service."""
    service.answers['GET /thing'] = Answer(200, content)
    with pytest.raises(ServiceUnavailable):
        remote.read(remote.send('GET', '/thing'))


@pytest.mark.parametrize(
    ('body', 'is_accepted'),
    [
        (b'default backend - 404', False),
        ({'message': 'no Route matched'}, False),
        (None, False),
        ({'errors': []}, True),
    ],
)
def test_send_accepts_404_of_service_and_not_of_proxy(
    remote: Remote, service: HttpService, body: object, is_accepted: bool
) -> None:
    service.answers['GET /thing'] = Answer(404, body)
    proxied_remote = Remote('Placement', remote._adapter, 'errors')
    with nullcontext() if is_accepted else pytest.raises(ServiceUnavailable):
        proxied_remote.send('GET', '/thing', accept=(404,))


def test_send_unfollowed_redirect_raises(remote: Remote, service: HttpService) -> None:
    service.answers['DELETE /thing'] = Answer(300, {})
    with pytest.raises(RemoteError):
        remote.send('DELETE', '/thing')
