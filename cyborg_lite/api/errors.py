# SPDX-License-Identifier: Apache-2.0
"""The JSON document that every error is sent as.

``error_message`` is a string that contains JSON; clients of version 2 read its text.
``errors`` is the format of the API working group, which keystoneauth reads. The
document has no other keys: with another key the SDK shows the text twice.
"""

import json
from http import HTTPStatus
from typing import Final

import webob

from cyborg_lite.api import microversion
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.requests import MethodNotAllowed

RETRY_AFTER: Final = 5  # seconds


def build_response(error: CyborgError, request_id: str) -> webob.Response:
    """Return the response for an error of the service."""
    response = _build(error.code, error.text, request_id)
    if isinstance(error, MethodNotAllowed):
        response.headers['Allow'] = str(error.kwargs['allowed'])
    return response


def replace_library_error(response: webob.Response, request_id: str) -> webob.Response:
    """Return the error document in place of the HTML page of a library."""
    status: int = response.status_int
    return _build(status, f'{HTTPStatus(status).phrase}.', request_id)


def build_protocol_error(status: int, text: str, request_id: str) -> webob.Response:
    """Return the response to input that is not a valid HTTP request.

    :param text: what is wrong; empty: the phrase of the status is used
    """
    response = _build(status, text or f'{HTTPStatus(status).phrase}.', request_id)
    response.headers['X-Openstack-Request-Id'] = request_id
    microversion.add_version_headers(response)
    return response


def _build(status: int, text: str, request_id: str) -> webob.Response:
    response = webob.Response(
        status=status,
        body=_build_document(status, text, request_id),
        content_type='application/json',
    )
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers['Retry-After'] = str(RETRY_AFTER)
    return response


def _build_document(status: int, text: str, request_id: str) -> bytes:
    fault = {
        'faultcode': 'Client' if status < 500 else 'Server',
        'faultstring': text,
        'debuginfo': None,
    }
    error = {
        'status': status,
        'title': HTTPStatus(status).phrase,
        'detail': text,
        'request_id': request_id,
    }
    return json.dumps({'error_message': json.dumps(fault), 'errors': [error]}).encode()
