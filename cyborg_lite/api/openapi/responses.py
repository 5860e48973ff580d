# SPDX-License-Identifier: Apache-2.0
"""What an operation may be answered: its own answer, and errors, which many share."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

from cyborg_lite.api import microversion
from cyborg_lite.api.openapi.answers import Answers
from cyborg_lite.api.openapi.parameters import REQUEST_ID
from cyborg_lite.api.openapi.routes import Route
from cyborg_lite.api.schemas import errors

Document = dict[str, Any]  # JSON

JSON: Final = 'application/json'

_OF_GUARDED_ONES: Final = (400, 401, 403, 503)
_OF_ONES_WITH_BODY: Final = (413, 415)
_VERSIONS: Final = (
    microversion.HEADER,
    microversion.MINIMUM_HEADER,
    microversion.MAXIMUM_HEADER,
    'Vary',
)
_MORE: Final = {401: 'WWW-Authenticate', 405: 'Allow', 503: 'Retry-After'}


def responses(route: Route, answers: Answers) -> Document:
    """By status.

    :param answers: gets what the operation shows
    """
    good = {str(route.status): _success(route, route.status, route.views, answers)}
    if route.accepted:
        code = HTTPStatus.ACCEPTED
        good[str(code.value)] = _success(route, code, (route.accepted,), answers)
    refused = {str(code): _refusal(code, route) for code in sorted(_errors(route))}
    return {**good, **refused}


def _success(
    route: Route, status: int, views: Iterable[type[Any]], answers: Answers
) -> Document:
    good: Document = {
        'description': HTTPStatus(status).phrase,
        'headers': _headers(status, _versioned(route)),
    }
    shown = [answers.schema(view) for view in views]
    if shown:
        schema = shown[0] if len(shown) == 1 else {'oneOf': shown}
        good['content'] = {JSON: {'schema': schema}}
    return good


def components(every: Iterable[Route]) -> Document:
    """What the answers of the routes refer to."""
    codes = sorted({code for route in every for code in _errors(route)})
    return {
        'schemas': {'Error': errors.ERROR, 'Unauthorized': errors.UNAUTHORIZED},
        'responses': {_name(code): _error(code, versioned=True) for code in codes},
        'headers': {
            name: {'required': True, 'schema': {'type': 'string'}}
            for name in (REQUEST_ID, *_VERSIONS, *_MORE.values())
        },
    }


def _errors(route: Route) -> set[int]:
    return {HTTPStatus.NOT_ACCEPTABLE, *route.errors, *_usual(route)}


def _usual(route: Route) -> Iterator[int]:
    if route.rule:
        yield from _OF_GUARDED_ONES
    if route.body:
        yield from _OF_ONES_WITH_BODY
    if '{' in route.path:
        yield HTTPStatus.NOT_FOUND
    if route.hidden:
        yield HTTPStatus.METHOD_NOT_ALLOWED


def _refusal(code: int, route: Route) -> Document:
    if _versioned(route):
        return {'$ref': f'#/components/responses/{_name(code)}'}
    return _error(code, versioned=False)


def _error(code: int, *, versioned: bool) -> Document:
    name = 'Unauthorized' if code == HTTPStatus.UNAUTHORIZED else 'Error'
    schema = {'$ref': f'#/components/schemas/{name}'}
    return {
        'description': HTTPStatus(code).phrase,
        'headers': _headers(code, versioned),
        'content': {JSON: {'schema': schema}},
    }


def _name(code: int) -> str:
    return HTTPStatus(code).phrase.replace(' ', '')


def _versioned(route: Route) -> bool:
    """The root is above all versions."""
    return route.path != '/'


def _headers(status: int, versioned: bool) -> Document:
    names = [REQUEST_ID]
    if versioned:
        names += _VERSIONS
    if status in _MORE:
        names.append(_MORE[status])
    if status == HTTPStatus.NOT_ACCEPTABLE:
        # The version may be what could not be agreed on.
        names = [name for name in names if name != microversion.HEADER]
    return {name: {'$ref': f'#/components/headers/{name}'} for name in names}
