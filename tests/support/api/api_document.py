# SPDX-License-Identifier: Apache-2.0
"""Checks of responses against the API document of their microversion.

Every response to the client of the API tests is checked, see ``conversation.py``.
"""

import re
from typing import Any, Final

import webob
from jsonschema import Draft202012Validator

from cyborg_lite.api.microversion import (
    HEADER,
    MINIMUM,
    V2_5,
    VERSIONS,
    Microversion,
)
from cyborg_lite.api.openapi import document

Document = dict[str, Any]  # JSON

_UNDOCUMENTED: Final = (400, 401, 403, 404, 405, 406, 413)
"""Possible statuses of a path or method that is not in the document."""


def check_response(request: webob.Request, response: webob.Response) -> None:
    """Check a response.

    :raises AssertionError: the response is not documented; says what to change where
    """
    documented = load_document(_read_version(response))
    operation = _match_operation(documented, request)
    name = f'{request.method} {request.environ["PATH_INFO"]}'
    is_check = name in ('GET /healthcheck', 'GET /healthcheck/ready')
    if is_check or request.method == 'OPTIONS':
        return  # for load balancers and browsers; not part of the API
    if operation is None:
        assert response.status_int in _UNDOCUMENTED, f'{name}: {response.status}'
        return
    code = str(response.status_int)
    assert code in operation['responses'], (
        f'{name} answers {code}, which is not documented: add it to errors of @expose.'
    )
    expected = _resolve_reference(documented, operation['responses'][code])
    missing = [name for name in expected['headers'] if name not in response.headers]
    assert not missing, f'{name} answers {code} without {missing}'
    _check_caching(request, response, name)
    if request.method != 'HEAD':
        _check_body(expected, response, documented, name)


def _check_caching(request: webob.Request, response: webob.Response, name: str) -> None:
    """Check that caches keep the responses to successful reads only, since 2.5."""
    if HEADER not in response.headers:
        return  # the list of versions has no microversion
    is_read = request.method in ('GET', 'HEAD') and response.status_int == 200
    is_marked = is_read and _read_version(response) >= V2_5
    expected = 'private, no-cache' if is_marked else None
    assert response.headers.get('Cache-Control') == expected, f'{name}: Cache-Control'


def _check_body(
    expected: Document, response: webob.Response, documented: Document, name: str
) -> None:
    if 'content' not in expected:
        assert not response.body, f'{name} has a body: add its view to @expose'
        return
    assert response.content_type == 'application/json'
    schema = expected['content']['application/json']['schema']
    full_schema = {**schema, 'components': documented['components']}
    for error in Draft202012Validator(full_schema).iter_errors(response.json):
        pointer = '/'.join(map(str, error.absolute_path))
        raise AssertionError(f'{name} does not match its view at {pointer}: {error}')


def load_document(version: Microversion | None) -> Document:
    """Return the API document of a microversion; None: of all of them."""
    return document.build_document(version)


def find_operation(method: str, path: str) -> dict[str, Any]:
    """Return an operation of the document of all microversions.

    :param path: below ``/v2``
    """
    operation: dict[str, Any] = load_document(None)['paths'][f'/v2{path}'][method]
    return operation


def _read_version(response: webob.Response) -> Microversion:
    header = response.headers.get(HEADER, '')
    for version in VERSIONS:
        if header == f'accelerator {version}':
            return version
    return MINIMUM


def _match_operation(documented: Document, request: webob.Request) -> Document | None:
    """Return the operation of a request; None: it is not in the document."""
    path = request.environ['PATH_INFO'].removesuffix('/')
    method = 'get' if request.method == 'HEAD' else request.method.lower()
    if path not in ('', '/v2') and not path.startswith('/v2/'):
        path = f'/v2{path}'
    for template, item in documented['paths'].items():
        pattern = re.sub('{[a-z_]+}', '[^/]+', template.removesuffix('/'))
        if method in item and re.fullmatch(pattern, path):
            operation: Document = item[method]
            return operation
    return None


def _resolve_reference(documented: Document, response: Document) -> Document:
    name = response.get('$ref', '').rpartition('/')[2]
    if not name:
        return response
    component: Document = documented['components']['responses'][name]
    return component
