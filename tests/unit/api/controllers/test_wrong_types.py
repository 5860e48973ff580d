# SPDX-License-Identifier: Apache-2.0
"""Bodies with values of wrong types, over all operations and all places of a body."""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from cyborg_lite.api.microversion import MAXIMUM
from cyborg_lite.api.openapi.routes import Route, list_routes
from cyborg_lite.errors.registry import find_code
from cyborg_lite.errors.requests import InvalidBody
from tests.support.api.calls import build_path
from tests.support.api.conversation import NOVA, Client

_VALUES: Final[tuple[Any, ...]] = (None, True, 5, 1.5, 'x', [], {}, [{}], {'x': None})
_PYTHON: Final = re.compile(r'\b(dict|str|int|bool|None\w*|True|False|tuple)\b')
INVALID_BODY: Final = find_code(InvalidBody)
ROUTES: Final = [route for route in list_routes(MAXIMUM) if route.body]

Place = tuple[str | int, ...]


def list_places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of a value and of all values in it."""
    yield place
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for step, child in children:
        yield from list_places(child, (*place, step))


def replace_value(body: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(body)
    parent = changed
    for step in place[:-1]:
        parent = parent[step]
    parent[place[-1]] = value
    return changed


def list_wrong_bodies(route: Route) -> Iterator[tuple[Any, Place]]:
    """Yield bodies in which the value at the place has another type or content."""
    assert route.body
    for example in route.body.document['examples']:
        for place in list_places(example):
            for value in _VALUES:
                yield replace_value(example, place, value), place


@pytest.mark.parametrize('route', ROUTES, ids=lambda route: route.operation_id)
def test_wrong_type_is_named_in_words_of_json(client: Client, route: Route) -> None:
    newest = client.at(str(MAXIMUM))
    newest.headers['X-Service-Roles'] = NOVA['X-Service-Roles']
    path = build_path(route)
    for body, place in list_wrong_bodies(route):
        answer = newest.send(route.method, path, raw=json.dumps(body).encode())
        if answer.status != 400:
            assert answer.status in (200, 201, 202, 204, 404, 409)
            continue
        (error,) = answer.json['errors']
        text = error['detail']
        assert not _PYTHON.search(text), (body, text)
        pointer = ''.join(f'/{step}' for step in place)
        is_content = error['code'] != INVALID_BODY  # no error of the schema
        assert is_content or error['pointer'].startswith(pointer), (body, error)
