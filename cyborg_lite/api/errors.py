# SPDX-License-Identifier: Apache-2.0
"""The JSON document that every error is sent as.

``error_message`` is a string that contains JSON; clients of version 2 read its text.
``errors`` is the format of the API working group, which keystoneauth reads. The
document has no other keys: with another key the SDK shows the text twice.
"""

import json
from http import HTTPStatus
from typing import Any, Final

import webob

from cyborg_lite.errors.base import CyborgError, Forbidden, InvalidInput, NotFound
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.registry import find_code
from cyborg_lite.errors.requests import (
    BodyTooLarge,
    MethodNotAllowed,
    Unauthenticated,
    UnsupportedMediaType,
)

RETRY_AFTER: Final = 5  # seconds

CODES: Final = 'x-error-codes'
"""Member of the API document that explains the error codes."""

# The errors that stand for the pages of libraries, by status.
_KINDS: Final = {
    kind.code: kind
    for kind in (
        InvalidInput,
        Unauthenticated,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        BodyTooLarge,
        UnsupportedMediaType,
        ServiceUnavailable,
    )
}


def build_response(
    error: CyborgError, request_id: str, document_url: str | None = None
) -> webob.Response:
    """Return the response for an error of the service.

    :param document_url: URL of the API document; None: the microversion is older than
        2.5, and the error has no code
    """
    further: dict[str, Any] = {}
    if document_url is not None:
        further = _build_code(type(error), document_url)
        if 'pointer' in error.kwargs:
            further['pointer'] = error.kwargs['pointer']
    response = _build(error.code, error.text, request_id, further)
    if isinstance(error, MethodNotAllowed):
        response.headers['Allow'] = str(error.kwargs['allowed'])
    return response


def replace_library_error(
    response: webob.Response, request_id: str, document_url: str | None = None
) -> webob.Response:
    """Return the error document in place of the page of a library.

    :param document_url: as above
    """
    status: int = response.status_int
    further: dict[str, Any] = {}
    if document_url is not None:
        further = _build_code(_KINDS.get(status, CyborgError), document_url)
    replacement = _build(status, f'{HTTPStatus(status).phrase}.', request_id, further)
    if status == HTTPStatus.UNAUTHORIZED:
        challenge = response.headers['WWW-Authenticate']
        replacement.headers['WWW-Authenticate'] = challenge
    return replacement


def _build_code(kind: type[CyborgError], document_url: str) -> dict[str, Any]:
    code = find_code(kind)
    link = {'rel': 'help', 'href': f'{document_url}#/{CODES}/{code}'}
    return {'code': code, 'links': [link]}


def _build(
    status: int, text: str, request_id: str, further: dict[str, Any]
) -> webob.Response:
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
        **further,
    }
    document = {'error_message': json.dumps(fault), 'errors': [error]}
    response = webob.Response(
        status=status,
        body=json.dumps(document).encode(),
        content_type='application/json',
    )
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers['Retry-After'] = str(RETRY_AFTER)
    return response
