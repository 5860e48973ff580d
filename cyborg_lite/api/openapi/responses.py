# SPDX-License-Identifier: Apache-2.0
"""Responses of the API document: success per operation, and shared errors."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

from cyborg_lite.api import microversion
from cyborg_lite.api.openapi import examples
from cyborg_lite.api.openapi.parameters import REQUEST_ID
from cyborg_lite.api.openapi.routes import Route
from cyborg_lite.api.openapi.view_schemas import ViewSchemas
from cyborg_lite.api.schemas import errors

Document = dict[str, Any]  # JSON

JSON: Final = 'application/json'

_ERROR: Final = {'$ref': '#/components/schemas/Error'}
_KEYSTONE_ERROR: Final = {'$ref': '#/components/schemas/KeystoneError'}
_ERRORS_WITH_RULE: Final = (400, 401, 403, 503)
_ERRORS_WITH_BODY: Final = (413, 415)
_VERSIONS: Final = (
    microversion.HEADER,
    microversion.MINIMUM_HEADER,
    microversion.MAXIMUM_HEADER,
    'Vary',
)
_LOCATION: Final = {
    'description': 'Since 2.7: URL of the created object, or of the operation that '
    'continues.',
    'schema': {'type': 'string', 'format': 'uri'},
}
_EXTRA_HEADERS: Final = {401: 'WWW-Authenticate', 405: 'Allow', 503: 'Retry-After'}


def build_responses(route: Route, schemas: ViewSchemas) -> Document:
    """Return the responses of an operation by status.

    :param schemas: collects the schemas of the views
    """
    successes = {
        str(route.status): _build_success(route, route.status, route.views, schemas)
    }
    if route.accepted:
        code = HTTPStatus.ACCEPTED
        successes[str(code.value)] = _build_success(
            route, code, route.accepted, schemas
        )
    failures = {
        str(code): {'$ref': f'#/components/responses/{_build_name(code)}'}
        if _is_versioned(route)
        else _build_error(code, versioned=False)
        for code in sorted(_list_errors(route))
    }
    return {**successes, **failures}


def _build_success(
    route: Route, status: int, views: Iterable[type[Any]], schemas: ViewSchemas
) -> Document:
    response: Document = {
        'description': HTTPStatus(status).phrase,
        'headers': _build_headers(status, _is_versioned(route)),
    }
    is_newer = schemas.newest >= microversion.V2_7
    if is_newer and status in (HTTPStatus.CREATED, HTTPStatus.ACCEPTED):
        response['headers']['Location'] = _LOCATION
    view_schemas = [schemas.build_schema(view) for view in views]
    if view_schemas:
        is_single = len(view_schemas) == 1
        schema = view_schemas[0] if is_single else {'oneOf': view_schemas}
        if route.selectable:
            build = schemas.build_partial_schema
            partial = [build(view, route.selectable) for view in views]
            schema = {'anyOf': [*view_schemas, *partial]}
        content: Document = {'schema': schema}
        sample = examples.load_sample(route.operation_id)
        # The sample is of the newest microversion.
        is_newest = schemas.newest == microversion.MAXIMUM
        if is_newest and sample is not None and sample.status == status:
            content['example'] = sample.response_body
        response['content'] = {JSON: content}
    return response


def build_components(
    routes: Iterable[Route], version: microversion.Microversion | None
) -> Document:
    """Return the shared components that the responses refer to.

    :param version: microversion to describe; None: all of them
    """
    has_code = None if version is None else version >= microversion.V2_5
    codes = sorted({code for route in routes for code in _list_errors(route)})
    return {
        'schemas': {
            'Error': errors.build_error(has_code=has_code),
            'KeystoneError': errors.UNAUTHORIZED,
            'Unauthorized': {
                True: _ERROR,
                None: {'anyOf': [_ERROR, _KEYSTONE_ERROR]},
                False: _KEYSTONE_ERROR,
            }[has_code],
        },
        'responses': {
            _build_name(code): _build_error(code, versioned=True) for code in codes
        },
        'headers': {
            name: {'required': True, 'schema': {'type': 'string'}}
            for name in (REQUEST_ID, *_VERSIONS, *_EXTRA_HEADERS.values())
        },
    }


def _list_errors(route: Route) -> set[int]:
    return {HTTPStatus.NOT_ACCEPTABLE, *route.errors, *_list_common_errors(route)}


def _list_common_errors(route: Route) -> Iterator[int]:
    if route.rule:
        yield from _ERRORS_WITH_RULE
    if route.body:
        yield from _ERRORS_WITH_BODY
    if '{' in route.path:
        yield HTTPStatus.NOT_FOUND
    if route.hidden:
        yield HTTPStatus.METHOD_NOT_ALLOWED


def _build_error(code: int, *, versioned: bool) -> Document:
    name = 'Unauthorized' if code == HTTPStatus.UNAUTHORIZED else 'Error'
    schema = {'$ref': f'#/components/schemas/{name}'}
    return {
        'description': HTTPStatus(code).phrase,
        'headers': _build_headers(code, versioned),
        'content': {JSON: {'schema': schema}},
    }


def _build_name(code: int) -> str:
    return HTTPStatus(code).phrase.replace(' ', '')


def _is_versioned(route: Route) -> bool:
    """Check whether the route has version headers; the root has none."""
    return route.path != '/'


def _build_headers(status: int, versioned: bool) -> Document:
    names = [REQUEST_ID]
    if versioned:
        names += _VERSIONS
    if status in _EXTRA_HEADERS:
        names.append(_EXTRA_HEADERS[status])
    if status == HTTPStatus.NOT_ACCEPTABLE:
        # The error may be that no version was negotiated.
        names = [name for name in names if name != microversion.HEADER]
    return {name: {'$ref': f'#/components/headers/{name}'} for name in names}
