# SPDX-License-Identifier: Apache-2.0
"""The document in which every error reaches a client.

``error_message`` is a string that holds JSON: that is where the clients of version 2
look for the text. ``errors`` is the form of the API working group, which keystoneauth
reads. No other key may stand beside them: the SDK would show the text twice.
"""

import json
from http import HTTPStatus
from typing import Final

import webob

from cyborg_lite.api import microversion
from cyborg_lite.exceptions import CyborgError, MethodNotAllowed

RETRY_AFTER: Final = 5  # seconds: what is away comes back, or an operator is called


def response(error: CyborgError, request_id: str) -> webob.Response:
    """``error`` as the answer to a request."""
    answer = _response(error.code, error.text, request_id)
    if isinstance(error, MethodNotAllowed):
        answer.headers['Allow'] = str(error.kwargs['allowed'])
    return answer


def in_our_words(found: webob.Response, request_id: str) -> webob.Response:
    """An answer of a library, whose page of HTML no client can show."""
    status: int = found.status_int
    return _response(status, f'{HTTPStatus(status).phrase}.', request_id)


def before_all(status: int, text: str, request_id: str) -> webob.Response:
    """What the web server says of itself, to what is no request of HTTP.

    :param text: may be empty
    """
    answer = _response(status, text or f'{HTTPStatus(status).phrase}.', request_id)
    answer.headers['X-Openstack-Request-Id'] = request_id
    microversion.announce(answer)
    return answer


def _response(status: int, text: str, request_id: str) -> webob.Response:
    answer = webob.Response(
        status=status,
        body=_document(status, text, request_id),
        content_type='application/json',
    )
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        answer.headers['Retry-After'] = str(RETRY_AFTER)
    return answer


def _document(status: int, text: str, request_id: str) -> bytes:
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
