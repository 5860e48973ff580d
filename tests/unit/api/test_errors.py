# SPDX-License-Identifier: Apache-2.0
"""Tests of the error document."""

import json

import pytest
import webob

from cyborg_lite.api import errors
from cyborg_lite.errors.base import CyborgError, InvalidInput
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.errors.requests import MethodNotAllowed

REQUEST = 'req-6c7a8b2e'


@pytest.mark.parametrize(
    ('error', 'status', 'code'),
    [
        (InvalidInput(reason='Too "long".'), 400, 'Client'),
        (DeviceProfileNotFound(name='nope'), 404, 'Client'),
        (ServiceUnavailable(what='The database'), 503, 'Server'),
    ],
)
def test_error_text_is_in_both_formats(
    error: CyborgError, status: int, code: str
) -> None:
    answer = errors.build_response(error, REQUEST)
    assert (answer.status_int, answer.content_type) == (status, 'application/json')
    assert set(answer.json) == {'error_message', 'errors'}
    fault = json.loads(answer.json['error_message'])
    assert fault == {'faultcode': code, 'faultstring': error.text, 'debuginfo': None}
    (entry,) = answer.json['errors']
    assert (entry['status'], entry['detail']) == (status, error.text)
    assert entry['request_id'] == REQUEST


def test_method_not_allowed_lists_methods() -> None:
    error = MethodNotAllowed(method='PUT', allowed='GET, POST')
    assert errors.build_response(error, REQUEST).headers['Allow'] == 'GET, POST'


def test_service_unavailable_has_retry_after() -> None:
    unavailable = errors.build_response(ServiceUnavailable(what='The bus'), REQUEST)
    assert int(unavailable.headers['Retry-After']) == errors.RETRY_AFTER
    invalid = errors.build_response(InvalidInput(reason='No.'), REQUEST)
    assert 'Retry-After' not in invalid.headers


def test_library_page_is_replaced() -> None:
    page = webob.Response(status=413, body=b'<html>Too large</html>')
    answer = errors.replace_library_error(page, REQUEST)
    assert answer.status_int == 413
    assert b'html' not in answer.body
    assert answer.json['errors'][0]['title'] == answer.json['errors'][0]['detail'][:-1]
