# SPDX-License-Identifier: Apache-2.0
"""Every error reaches every client as it can show it."""

import json

import pytest
import webob

from cyborg_lite.api import errors
from cyborg_lite.exceptions import (
    CyborgError,
    DeviceProfileNotFound,
    InvalidInput,
    MethodNotAllowed,
    ServiceUnavailable,
)

REQUEST = 'req-6c7a8b2e'


@pytest.mark.parametrize(
    ('error', 'status', 'code'),
    [
        (InvalidInput(reason='Too "long".'), 400, 'Client'),
        (DeviceProfileNotFound(name='nope'), 404, 'Client'),
        (ServiceUnavailable(what='The database'), 503, 'Server'),
    ],
)
def test_the_text_stands_where_each_client_looks(
    error: CyborgError, status: int, code: str
) -> None:
    answer = errors.response(error, REQUEST)
    assert (answer.status_int, answer.content_type) == (status, 'application/json')
    assert set(answer.json) == {'error_message', 'errors'}
    fault = json.loads(answer.json['error_message'])
    assert fault == {'faultcode': code, 'faultstring': error.text, 'debuginfo': None}
    (shown,) = answer.json['errors']
    assert (shown['status'], shown['detail']) == (status, error.text)
    assert shown['request_id'] == REQUEST


def test_the_methods_that_are_answered_are_named() -> None:
    error = MethodNotAllowed(method='PUT', allowed='GET, POST')
    assert errors.response(error, REQUEST).headers['Allow'] == 'GET, POST'


def test_who_finds_something_away_is_told_when_to_come_again() -> None:
    away = errors.response(ServiceUnavailable(what='The bus'), REQUEST)
    assert int(away.headers['Retry-After']) == errors.RETRY_AFTER
    wrong = errors.response(InvalidInput(reason='No.'), REQUEST)
    assert 'Retry-After' not in wrong.headers


def test_a_page_of_a_library_becomes_our_document() -> None:
    page = webob.Response(status=413, body=b'<html>Too large</html>')
    answer = errors.in_our_words(page, REQUEST)
    assert answer.status_int == 413
    assert b'html' not in answer.body
    assert answer.json['errors'][0]['title'] == answer.json['errors'][0]['detail'][:-1]
