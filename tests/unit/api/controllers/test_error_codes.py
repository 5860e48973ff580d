# SPDX-License-Identifier: Apache-2.0
"""Codes of all errors: of each error class, and of failed answers of all operations."""

from string import Formatter
from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.api.microversion import MAXIMUM
from cyborg_lite.api.openapi.routes import Route, list_routes
from cyborg_lite.errors import registry
from tests.support.api.conversation import NOVA, Client, build_persona
from tests.support.api.error_codes import check_code

ROUTES = [route for route in list_routes(MAXIMUM) if route.rule]


@pytest.mark.parametrize('code', registry.list_errors())
def test_error_of_every_class_has_its_code(client: Client, code: str) -> None:
    kind = registry.list_errors()[code]
    texts = Formatter().parse(kind.message + kind.advice)
    fields: dict[str, Any] = {name: 'x' for _, name, _, _ in texts if name}
    newest = client.at(str(MAXIMUM))
    newest.is_described = False  # no operation answers with all statuses
    newest.conductor.refusal = kind(**fields, allowed='GET')
    answer = newest.get('/devices')
    newest.conductor.refusal = None
    assert check_code(client, answer, kind.code) == code


def list_failures(route: Route, path: str) -> list[tuple[int, str, dict[str, Any]]]:
    """Return status, path and headers of requests that the operation refuses."""
    failures: list[tuple[int, str, dict[str, Any]]] = [
        (400, f'{path}?colour=red', {}),
        (403, path, build_persona('nobody')),
        (406, path, {'Accept': 'text/html'}),
    ]
    if route.method != 'GET':
        failures.append((400, path, {'If-Match': 'x'}))
    if route.body and not route.body.optional:
        failures.append((415, path, {'Content-Type': 'text/plain'}))
    return failures


@pytest.mark.parametrize('route', ROUTES, ids=lambda route: route.operation_id)
def test_refused_requests_of_every_operation_have_code(
    client: Client, route: Route
) -> None:
    names = ('uuid', 'same_uuid', 'device_profile', 'name')
    path = route.path.removeprefix('/v2').format(**dict.fromkeys(names, str(uuid4())))
    newest = client.at(str(MAXIMUM))
    newest.headers['X-Service-Roles'] = NOVA['X-Service-Roles']
    for status, target, headers in list_failures(route, path):
        raw = b'{}' if route.body else None
        answer = newest.send(route.method, target, raw=raw, headers=headers)
        check_code(client, answer, status)
