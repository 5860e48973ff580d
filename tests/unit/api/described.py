# SPDX-License-Identifier: Apache-2.0
"""Whether an answer is one that the API document of its microversion promises.

Every conversation of these tests is held against it, see ``conversation.py``.
"""

import functools
import re
from typing import Any, Final

import webob
from jsonschema import Draft202012Validator

from cyborg_lite.api.controllers.root import Root
from cyborg_lite.api.microversion import HEADER, MINIMUM, VERSIONS, Microversion
from cyborg_lite.api.openapi import document

Document = dict[str, Any]  # JSON

_UNKNOWN: Final = (400, 401, 403, 404, 405, 406, 413)
"""What a path or a method that is not in the document may be answered."""


def check(request: webob.Request, answer: webob.Response) -> None:
    """:raises AssertionError: with what to write where"""
    version = _version(answer)
    described = document_of(version)
    operation = _operation(described, request)
    asked = f'{request.method} {request.environ["PATH_INFO"]}'
    if asked == 'GET /healthcheck' or request.method == 'OPTIONS':
        return  # for load balancers and for browsers, and no part of the API
    if operation is None:
        assert answer.status_int in _UNKNOWN, f'{asked}: {answer.status}'
        return
    code = str(answer.status_int)
    assert code in operation['responses'], (
        f'{asked} answers {code}, which its controller does not say: write it into '
        'errors of @expose.'
    )
    promised = _resolved(described, operation['responses'][code])
    missing = [name for name in promised['headers'] if name not in answer.headers]
    assert not missing, f'{asked} answers {code} without {missing}'
    if request.method != 'HEAD':
        _check_body(promised, answer, described, asked)


def _check_body(
    promised: Document, answer: webob.Response, described: Document, asked: str
) -> None:
    if 'content' not in promised:
        assert not answer.body, f'{asked} has a body: name its view in @expose'
        return
    assert answer.content_type == 'application/json'
    schema = promised['content']['application/json']['schema']
    whole = {**schema, 'components': described['components']}
    for error in Draft202012Validator(whole).iter_errors(answer.json):
        place = '/'.join(map(str, error.absolute_path))
        raise AssertionError(f'{asked} is not as its view says, at {place}: {error}')


@functools.cache
def document_of(version: Microversion | None) -> Document:
    backing: Any = None  # controllers look at it only when they answer
    return document.build(Root(backing), version)


def operation(method: str, path: str) -> dict[str, Any]:
    """Of the document of all microversions; ``path`` below the version."""
    found: dict[str, Any] = document_of(None)['paths'][f'/v2{path}'][method]
    return found


def _version(answer: webob.Response) -> Microversion:
    spoken = answer.headers.get(HEADER, '')
    found = [one for one in VERSIONS if spoken == f'accelerator {one}']
    return found[0] if found else MINIMUM


def _operation(described: Document, request: webob.Request) -> Document | None:
    """None: the document has no such path, or not such a method of it."""
    path = request.environ['PATH_INFO'].removesuffix('/')
    method = 'get' if request.method == 'HEAD' else request.method.lower()
    for template, item in described['paths'].items():
        pattern = re.sub('{[a-z_]+}', '[^/]+', template.removesuffix('/'))
        if path in ('', '/v2') or path.startswith('/v2/'):
            met = re.fullmatch(pattern, path)
        else:
            met = re.fullmatch(pattern, f'/v2{path}')
        if met:
            found: Document | None = item.get(method)
            return found
    return None


def _resolved(described: Document, response: Document) -> Document:
    name = response.get('$ref', '').rpartition('/')[2]
    found: Document = described['components']['responses'][name] if name else response
    return found
