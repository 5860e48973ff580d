# SPDX-License-Identifier: Apache-2.0
"""What leaves this process for another service, and how its failures reach us."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext

from cyborg_lite.clients.session import Remote, connect
from cyborg_lite.conf import placement as section
from cyborg_lite.exceptions import RemoteError, ServiceUnavailable
from tests.fakes.http_service import Answer, HttpService

Reach: TypeAlias = Callable[..., Remote | None]


@pytest.fixture
def service() -> Iterator[HttpService]:
    with HttpService() as service:
        service.answers['GET /thing'] = Answer(body={'a': 1})
        yield service


@pytest.fixture
def reach(tmp_path: Path) -> Reach:
    """By a file, as the operator does: plugins read options that we do not know."""

    def reach(**options: object) -> Remote | None:
        file = tmp_path / 'service.conf'
        lines = [f'{name} = {value}' for name, value in options.items()]
        file.write_text('\n'.join(['[placement]', 'connect_retries = 0', *lines]))
        conf = cfg.ConfigOpts()
        conf.register_opts(section.OPTIONS, group=section.GROUP)
        conf(['--config-file', str(file)])
        return connect(conf, section.GROUP, 'Placement', '1.28')

    return reach


@pytest.fixture
def remote(reach: Reach, service: HttpService) -> Remote:
    remote = reach(endpoint_override=service.url, timeout=5)
    assert remote is not None
    return remote


def test_a_section_left_empty_is_no_service(reach: Reach) -> None:
    assert reach() is None


def test_an_address_alone_asks_as_those_without_keystone_do(
    remote: Remote, service: HttpService
) -> None:
    remote.send('GET', '/thing')
    (asked,) = service.asked
    assert asked.headers['X-Auth-Token'] == 'admin'
    assert asked.headers['OpenStack-API-Version'] == 'placement 1.28'


@pytest.mark.parametrize(
    ('options', 'token'),
    [
        ({'auth_type': 'none', 'endpoint_override': '{url}'}, 'admin'),
        ({'auth_type': 'admin_token', 'endpoint': '{url}', 'token': 'a:b'}, 'a:b'),
    ],
)
def test_the_token_is_the_one_that_the_auth_type_calls_for(
    reach: Reach, service: HttpService, options: dict[str, str], token: str
) -> None:
    there = {name: value.format(url=service.url) for name, value in options.items()}
    remote = reach(**there)
    assert remote is not None
    remote.send('GET', '/thing')
    assert service.asked[0].headers['X-Auth-Token'] == token


def test_the_callers_request_id_goes_along(
    remote: Remote, service: HttpService
) -> None:
    mine = 'req-7c9e6679-7425-40de-944b-e07fc1f90ae7'
    RequestContext(global_request_id=mine)
    remote.send('GET', '/thing')
    assert service.asked[0].headers['X-OpenStack-Request-ID'] == mine


def test_one_connection_serves_many_requests(
    remote: Remote, service: HttpService
) -> None:
    for _ in range(5):
        remote.send('GET', '/thing')
    assert (len(service.asked), service.connections) == (5, 1)


def test_a_body_is_sent_as_json(remote: Remote, service: HttpService) -> None:
    service.answers['PUT /thing'] = Answer(body={'a': 2})
    answer = remote.send('PUT', '/thing', {'a': 2})
    assert answer.json() == {'a': 2}
    assert json.loads(service.asked[0].body) == {'a': 2}


@pytest.mark.parametrize('status', [500, 502, 503, 504])
def test_a_service_in_trouble_is_unavailable(
    remote: Remote, service: HttpService, status: int
) -> None:
    service.answers['GET /thing'] = Answer(status)
    with pytest.raises(ServiceUnavailable, match='Placement does not answer'):
        remote.send('GET', '/thing')


def test_a_service_that_is_not_there_is_unavailable(reach: Reach) -> None:
    remote = reach(endpoint_override='http://127.0.0.1:1')
    assert remote is not None
    with pytest.raises(ServiceUnavailable, match='Placement'):
        remote.send('GET', '/thing')


def test_a_service_that_never_answers_is_unavailable(
    reach: Reach, service: HttpService
) -> None:
    service.answers['GET /thing'] = Answer(0)
    remote = reach(endpoint_override=service.url, timeout=0.1)
    assert remote is not None
    with pytest.raises(ServiceUnavailable, match='Placement'):
        remote.send('GET', '/thing')


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ({'errors': [{'title': 'Bad', 'detail': 'No such\n\n trait X'}]}, 'trait X'),
        ({'itemNotFound': {'code': 404, 'message': 'No server'}}, 'No server'),
        ({'error': {'message': 'Not yours'}}, 'Not yours'),
        ({'odd': 1}, 'Not Found'),
        (['odd'], 'Not Found'),
        (b'<html>plain</html>', 'Not Found'),
    ],
)
def test_a_refusal_says_what_the_service_said(
    remote: Remote, service: HttpService, body: object, reason: str
) -> None:
    service.answers['GET /thing'] = Answer(404, body)
    with pytest.raises(RemoteError, match=f'Placement answered 404: .*{reason}'):
        remote.send('GET', '/thing')


def test_a_long_refusal_is_cut(remote: Remote, service: HttpService) -> None:
    service.answers['GET /thing'] = Answer(400, {'error': {'message': 'x' * 9999}})
    with pytest.raises(RemoteError) as raised:
        remote.send('GET', '/thing')
    assert len(raised.value.text) < 300


def test_a_refusal_that_the_sender_expects_is_an_answer(
    remote: Remote, service: HttpService
) -> None:
    service.answers['GET /thing'] = Answer(404)
    answer = remote.send('GET', '/thing', accept=(404,))
    assert answer.status_code == 404


@pytest.fixture
def with_password(reach: Reach, service: HttpService) -> Remote:
    """The service plays both parts: Keystone, and what its catalogue leads to."""
    remote = reach(
        auth_type='password',
        auth_url=f'{service.url}/v3',
        username='cyborg',
        password='s3cr3t',
        user_domain_id='default',
        project_name='service',
        project_domain_id='default',
    )
    assert remote is not None
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
    here = [{'rel': 'self', 'href': f'{service.url}/v3/'}]
    version = {'id': 'v3.14', 'status': 'stable', 'links': here}
    service.answers['GET /v3'] = Answer(200, {'version': version})
    service.answers['GET /placement/thing'] = Answer(body={'a': 1})
    return remote


def test_with_credentials_the_address_comes_from_the_catalogue(
    with_password: Remote, service: HttpService
) -> None:
    for _ in range(2):
        assert with_password.send('GET', '/thing').json() == {'a': 1}
    paths = [asked.path for asked in service.asked]
    assert paths.count('/v3/auth/tokens') == 1
    assert paths[-2:] == ['/placement/thing'] * 2
    assert service.asked[-1].headers['X-Auth-Token'] == 'from-keystone'


def test_credentials_that_keystone_refuses_are_named_as_such(
    with_password: Remote, service: HttpService
) -> None:
    service.answers['POST /v3/auth/tokens'] = Answer(
        401, {'error': {'code': 401, 'message': 'Please log in.'}}
    )
    with pytest.raises(RemoteError, match='Keystone answered 401: ') as raised:
        with_password.send('GET', '/thing')
    assert 's3cr3t' not in raised.value.text


def test_a_keystone_in_trouble_is_named_as_such(
    with_password: Remote, service: HttpService
) -> None:
    service.answers['POST /v3/auth/tokens'] = Answer(503)
    with pytest.raises(ServiceUnavailable, match='Keystone does not answer'):
        with_password.send('GET', '/thing')


def test_a_catalogue_without_the_service_is_no_answer_from_it(
    with_password: Remote, service: HttpService
) -> None:
    answer = service.answers['POST /v3/auth/tokens']
    assert isinstance(answer.body, dict)
    answer.body['token']['catalog'] = []
    with pytest.raises(ServiceUnavailable, match='Placement'):
        with_password.send('GET', '/thing')
