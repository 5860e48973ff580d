# SPDX-License-Identifier: Apache-2.0
"""Tests of requests through a connection pool."""

import gzip
from collections.abc import Iterator
from unittest import mock

import pytest
import requests
import urllib3
from urllib3.exceptions import ConnectTimeoutError

from cyborg_lite.clients.connection_pool import PoolAdapter, PoolSender
from tests.doubles.http_service import Answer, HttpService

_HEADERS = {'User-Agent': 'tests', 'Accept': '*/*'}
_SETTINGS = {'stream': False, 'proxies': {}, 'verify': True, 'cert': None}


@pytest.fixture
def service() -> Iterator[HttpService]:
    with HttpService() as service:
        service.answers['GET /thing?a=1'] = Answer(body={'a': 'é'})
        yield service


@pytest.fixture
def sender(service: HttpService) -> PoolSender:
    return create_sender(service.url)


def create_sender(url: str) -> PoolSender:
    sender = PoolAdapter().create_sender(url, _HEADERS, _SETTINGS)
    assert sender is not None
    return sender


@pytest.mark.parametrize(
    'settings', [{'stream': True}, {'proxies': {'http': 'http://127.0.0.1:1'}}]
)
def test_create_sender_stream_or_proxy_returns_none(
    settings: dict[str, object],
) -> None:
    adapter = PoolAdapter()
    assert not adapter.create_sender('http://a', _HEADERS, _SETTINGS | settings)


def test_send_returns_whole_response(service: HttpService, sender: PoolSender) -> None:
    url = f'{service.url}/thing?a=1'
    for _ in range(2):
        response = sender.send('GET', url, {'accept': 'text/x'}, None, 5)
        assert (response.status_code, response.json()) == (200, {'a': 'é'})
        assert (response.url, response.reason) == (url, 'OK')
        assert response.request.headers['Accept'] == 'text/x'
    received = service.requests[0]
    assert received.headers.get_all('Accept') == ['text/x']
    assert received.headers['User-Agent'] == 'tests'
    assert service.connections == 1


def test_send_compressed_response_is_decoded(
    service: HttpService, sender: PoolSender
) -> None:
    headers = {'Content-Encoding': 'gzip', 'Content-Type': 'text/plain'}
    service.answers['GET /'] = Answer(200, gzip.compress(b'text'), headers)
    assert sender.send('GET', f'{service.url}/', {}, None, 5).text == 'text'


def test_send_body_has_its_length(service: HttpService, sender: PoolSender) -> None:
    service.answers['PUT /thing'] = Answer(404)
    for body in (b'abc', None):
        response = sender.send('PUT', f'{service.url}/thing', {}, body, 5)
        assert response.status_code == 404
    assert [request.body for request in service.requests] == [b'abc', b'']
    lengths = [request.headers['Content-Length'] for request in service.requests]
    assert lengths == ['3', '0']


def test_send_no_answer_raises_read_timeout(
    service: HttpService, sender: PoolSender
) -> None:
    service.answers['GET /'] = Answer(0)
    with pytest.raises(requests.ReadTimeout):
        sender.send('GET', f'{service.url}/', {}, None, 0.1)


def test_send_refused_connection_raises_connection_error() -> None:
    url = 'http://127.0.0.1:1'
    with pytest.raises(requests.ConnectionError):
        create_sender(url).send('GET', url, {}, None, 5)


def test_send_wrong_certificate_raises_ssl_error(service: HttpService) -> None:
    url = service.url.replace('http:', 'https:')
    with pytest.raises(requests.exceptions.SSLError):
        create_sender(url).send('GET', url, {}, None, 5)


def test_send_slow_connection_raises_connect_timeout() -> None:
    pool = mock.create_autospec(urllib3.HTTPConnectionPool)
    pool.urlopen.side_effect = ConnectTimeoutError()
    with pytest.raises(requests.ConnectTimeout):
        PoolSender(pool, _HEADERS).send('GET', 'http://a', {}, None, 5)
