# SPDX-License-Identifier: Apache-2.0
"""Tests of the parts that all responses share, errors above all."""

import json
import logging
import re
from io import BytesIO
from typing import Any

import pytest
import webob

from cyborg_lite.api import errors
from cyborg_lite.api.app import assemble
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.hosts import HostAway
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import (
    ADMIN,
    READER,
    Answer,
    Client,
    build_configuration,
)
from tests.support.api.error_codes import check_code

REQUEST_ID = re.compile(r'req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
PROFILE = [{'name': 'dp1', 'groups': [{'resources:FPGA': '1'}]}]


def check(answer: Answer, status: int) -> None:
    """Check that the body is the error document."""
    assert answer.status == status
    assert answer.headers['Content-Type'] == 'application/json'
    assert answer.headers['Vary'] == 'OpenStack-API-Version'
    assert answer.headers['OpenStack-API-Maximum-Version'] == '2.7'
    document = json.loads(answer.body)
    assert list(document) == ['error_message', 'errors']
    fault = json.loads(document['error_message'])
    assert list(fault) == ['faultcode', 'faultstring', 'debuginfo']
    assert fault['faultcode'] == ('Client' if status < 500 else 'Server')
    assert fault['debuginfo'] is None
    text = fault['faultstring']
    assert text
    assert '<' not in text
    (error,) = document['errors']
    request_id = answer.headers['X-Openstack-Request-Id']
    assert error == {
        'status': status,
        'title': error['title'],
        'detail': text,
        'request_id': request_id,
    }


ERRORS: list[tuple[str, str, dict[str, Any], int]] = [
    ('GET', '/devices?x=1', {}, 400),
    ('GET', '/devices?type=%ff', {}, 400),
    ('POST', '/device_profiles', {'raw': b'[}'}, 400),
    ('GET', '/devices/nobody', {}, 404),
    ('GET', '/nothing', {}, 404),
    ('GET', '/%ff%fe', {}, 404),
    ('GET', '/device_profiles/%ff', {}, 404),
    ('PUT', '/devices', {}, 405),
    ('BREW', '/devices', {}, 405),
    ('GET', '/devices', {'headers': {'Accept': 'text/html'}}, 406),
    ('GET', '/devices', {'headers': {'Accept': 'application/json;q=0'}}, 406),
    ('GET', '/devices', {'headers': {'Accept': 'application/json;a=b;q=0'}}, 406),
    ('GET', '/devices', {'headers': {'OpenStack-API-Version': 'x'}}, 406),
    (
        'POST',
        '/device_profiles',
        {'raw': b'[]', 'headers': {'Content-Type': 'text/plain'}},
        415,
    ),
    ('POST', '/device_profiles', {'raw': b'[' + b' ' * 114688 + b']'}, 413),
]


@pytest.mark.parametrize(('method', 'path', 'arguments', 'status'), ERRORS)
def test_errors_have_one_document_and_code_since_2_5(
    client: Client, method: str, path: str, arguments: dict[str, Any], status: int
) -> None:
    check(client.send(method, path, **arguments), status)
    if 'OpenStack-API-Version' not in arguments.get('headers', {}):
        answer = client.at('2.5').send(method, path, **arguments)
        check_code(client, answer, status)
        assert answer.headers['OpenStack-API-Version'] == 'accelerator 2.5'


def test_error_since_2_5_without_token_has_code(client: Client) -> None:
    anonymous = client.as_({}, '2.5')
    answer = anonymous.get('/devices')
    assert check_code(client, answer, 401) == 'cyborg_lite.request.unauthenticated'
    assert answer.headers['WWW-Authenticate'] == 'Keystone uri=""'
    assert answer.headers['OpenStack-API-Version'] == 'accelerator 2.5'
    assert set(anonymous.at('2.4').get('/devices').json) == {'error'}


def test_body_too_large_names_limit(client: Client) -> None:
    answer = client.send('POST', '/device_profiles', raw=b' ' * 114689)
    assert '114688' in answer.fault
    assert client.send('POST', '/device_profiles', raw=b' ' * 114688).status == 400


class Endless:
    """An endless body of unknown length that counts the bytes read."""

    def __init__(self) -> None:
        self.size_read = 0

    def read(self, size: int = -1) -> bytes:
        count = 65536 if size is None or size < 0 else size
        self.size_read += count
        return b' ' * count


def post_raw(client: Client, **environ: object) -> Answer:
    """Send a POST with other values in the WSGI environment."""
    request = webob.Request.blank('/v2/device_profiles', method='POST')
    request.headers.update({**ADMIN, 'Content-Type': 'application/json'})
    request.environ.pop('CONTENT_LENGTH', None)
    request.environ.update({'wsgi.input': BytesIO(b'[]'), **environ})
    return Answer(request.get_response(client.application))


def test_chunked_body_is_limited(client: Client) -> None:
    body = Endless()
    chunked = {'wsgi.input': body, 'wsgi.input_terminated': True}
    check(post_raw(client, **chunked), 413)
    assert body.size_read < 300_000


@pytest.mark.parametrize('length', ['x', '-1', '1.5', '\xb2', '9' * 5000])
def test_content_length_must_be_a_number(client: Client, length: str) -> None:
    answer = post_raw(client, CONTENT_LENGTH=length)
    assert answer.status in (400, 413)
    check(answer, answer.status)


def test_truncated_body_is_refused(client: Client) -> None:
    check(post_raw(client, CONTENT_LENGTH='100'), 400)


@pytest.mark.parametrize('bomb', [b'[' * 50_000, b'{"a":' * 20_000, b'9' * 50_000])
@pytest.mark.parametrize('closed', [False, True])
def test_deeply_nested_json_is_refused(
    client: Client, bomb: bytes, closed: bool
) -> None:
    if closed:
        bomb += bomb.translate(bytes.maketrans(b'[{', b']}')).replace(b'"a":', b'')
    check(client.send('POST', '/device_profiles', raw=bomb[:114_000]), 400)


@pytest.mark.parametrize(
    'content_type',
    [
        'application/json',
        'application/json; charset=utf-8',
        'application/json;charset=UTF-8',
        'Application/JSON; Charset="utf-8"',
        'application/json;',
    ],
)
def test_json_content_types_are_accepted(client: Client, content_type: str) -> None:
    answer = client.send(
        'POST', '/device_profiles', PROFILE, headers={'Content-Type': content_type}
    )
    assert answer.status == 201


@pytest.mark.parametrize(
    'content_type',
    [
        '',
        'text/plain',
        'application/xml',
        'application/x-www-form-urlencoded',
        'multipart/form-data',
        'application/json-patch+json',
        'application/jsonx',
        'application/json; charset=utf-16',
        'application/json; charset=latin-1',
        'json',
        ';',
    ],
)
def test_other_content_types_are_refused(client: Client, content_type: str) -> None:
    headers = {'Content-Type': content_type}
    answer = client.send('POST', '/device_profiles', PROFILE, headers=headers)
    assert answer.status == 415


def test_missing_body_is_refused(client: Client) -> None:
    assert client.send('POST', '/device_profiles').status == 415


@pytest.mark.parametrize(
    'accept',
    [
        None,
        '',
        '*/*',
        'application/json',
        'application/*',
        'application/json; charset=UTF-8',
        'Application/JSON;charset="utf-8";q=0.5, text/html',
        'text/html,application/json;q=0.1',
        'text/html,*/*;q=0.8',
        'garbage',
        '\xff',
    ],
)
def test_accept_header_with_json_is_served(client: Client, accept: str | None) -> None:
    headers = {} if accept is None else {'Accept': accept}
    answer = client.get('/devices', headers=headers)
    assert answer.status == 200
    assert answer.headers['Content-Type'] == 'application/json'


def test_responses_have_request_id(client: Client) -> None:
    ids = {
        client.get(path).headers['X-Openstack-Request-Id']
        for path in ('', '/devices', '/nothing')
    }
    assert len(ids) == 3
    assert all(REQUEST_ID.fullmatch(text) for text in ids)


def test_global_request_id_is_kept(client: Client) -> None:
    request_id = 'req-00000000-1111-2222-3333-444444444444'
    answer = client.get('/devices', headers={'X-Openstack-Request-Id': request_id})
    caller = client.conductor.callers[-1]
    assert caller.global_request_id == request_id
    assert caller.request_id == answer.headers['X-Openstack-Request-Id'] != request_id


def test_invalid_global_request_id_is_dropped(client: Client) -> None:
    client.get('/devices', headers={'X-Openstack-Request-Id': 'x\u00ff'})
    assert client.conductor.callers[-1].global_request_id is None


def test_request_is_logged_in_one_line(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, 'cyborg_lite.api')
    client.get('/nothing%0aFAKE')
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith('GET /v2/nothing\\nFAKE: 404 in ')


@pytest.mark.parametrize(
    'error', [ServiceUnavailable(what='the bus'), HostAway(host='compute-1')]
)
def test_unavailable_error_has_retry_after(client: Client, error: CyborgError) -> None:
    client.conductor.refusal = error
    for path in ('/device_profiles', '/accelerator_requests', '/devices'):
        answer = client.get(path)
        check(answer, 503)
        assert answer.headers['Retry-After'] == str(errors.RETRY_AFTER)


def test_unexpected_error_hides_details(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.conductor.refusal = RuntimeError('SELECT secret FROM /etc/passwd')
    client.is_described = False
    answer = client.get('/devices')
    check(answer, 500)
    assert b'secret' not in answer.body
    assert b'passwd' not in answer.body
    assert 'SELECT secret' in caplog.text


def build_client(**options: Any) -> Client:
    """Return a client of a service with options of ``[oslo_middleware]``."""
    conf = build_configuration()
    conductor = LocalConductor()
    assemble(conf, conductor.client)  # the libraries register their options
    for name, value in options.items():
        conf.set_override(name, value, group='oslo_middleware')
    return Client(conductor, assemble(conf, conductor.client))


def test_body_limit_is_configurable() -> None:
    client = build_client(max_request_body_size=10)
    answer = client.post('/device_profiles', PROFILE)
    check(answer, 413)
    assert '10 bytes' in answer.fault


@pytest.mark.parametrize(
    ('trusted', 'base'),
    [(False, 'http://controller:6666'), (True, 'https://cloud.example/prefix')],
)
def test_proxy_headers_are_used_if_trusted(trusted: bool, base: str) -> None:
    client = build_client(enable_proxy_headers_parsing=trusted)
    answer = client.get(
        '',
        headers={
            'X-Forwarded-Proto': 'https',
            'X-Forwarded-Host': 'cloud.example',
            'X-Forwarded-Prefix': '/prefix',
        },
    )
    assert answer.json['links'][0]['href'] == f'{base}/v2/'


@pytest.mark.parametrize('path', ['/healthcheck', '/accelerator/healthcheck'])
@pytest.mark.parametrize(
    'headers', [{}, {'Accept': 'text/html'}, {'OpenStack-API-Version': 'x'}]
)
def test_healthcheck_returns_200(
    client: Client, path: str, headers: dict[str, str]
) -> None:
    client.prefix = ''
    answer = client.as_({}).get(path, headers=headers)
    assert answer.status == 200
    assert 'OpenStack-API-Version' not in answer.headers


def test_policy_is_checked_before_body(client: Client) -> None:
    reader = client.as_(READER)
    for raw in (b'', b'[}', b'[]', b'[' * 50_000):
        assert reader.send('POST', '/device_profiles', raw=raw).status == 403
    headers = {'Content-Type': 'text/plain'}
    answer = reader.send('POST', '/device_profiles', raw=b'x', headers=headers)
    assert answer.status == 403


@pytest.mark.parametrize(
    'host',
    [
        'a b',
        'a/b',
        'x@y',
        'a"b',
        '[::1',
        '::1',
        'x:port',
        'x:',
        '[x]',
        'a?b',
        'a#b',
        'x\\y',
        '<x>',
        'x\xe9',
        'x' * 256,
        '$(x)',
    ],
)
@pytest.mark.parametrize('header', ['Host', 'X-Forwarded-Host'])
def test_invalid_host_header_returns_400(host: str, header: str) -> None:
    client = build_client(enable_proxy_headers_parsing=True)
    answer = client.get('/devices', {header: host})
    assert answer.status == 400
    assert 'Host' in answer.fault
    assert host not in answer.fault


@pytest.mark.parametrize(
    'host',
    ['x', 'api.example:6666', '192.0.2.1', '[2001:db8::1]:443', '[::]', 'a_b-c.~'],
)
def test_valid_host_header_starts_links(client: Client, host: str) -> None:
    (link,) = client.get('', {'Host': host}).json['links']
    assert link['href'] == f'http://{host}/v2/'


@pytest.mark.parametrize(
    'path',
    [
        '//[/v2',
        '//[::1/v2',
        '//]/v2',
        '//x:y/v2',
        'http://[/v2',
        '/v2/[',
        '/v2//[/x',
        '/v2/\x00',
        '/v2/%',
        '/v2/%zz',
        '/v2/\xe2\x84\x80',
        '/v2/..//[/',
        '/v2/devices/\r\nX: y',
        '*',
        '',
    ],
)
@pytest.mark.parametrize('method', ['GET', 'OPTIONS', 'POST', 'CONNECT'])
def test_malformed_path_is_no_server_error(
    client: Client, method: str, path: str
) -> None:
    """WSGI servers in front of the application pass such paths on."""
    environ = webob.Request.blank('/', method=method, headers=ADMIN).environ
    for query in ('', '[', '%', '%ff', '\x00', 'limit=%', '//[=1'):
        request = webob.Request(
            {**environ, 'PATH_INFO': path, 'RAW_URI': path, 'QUERY_STRING': query}
        )
        assert request.get_response(client.application).status_int < 500
