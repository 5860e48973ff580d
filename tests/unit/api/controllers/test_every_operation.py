# SPDX-License-Identifier: Apache-2.0
"""Microversions, malformed UUIDs and errors, over all operations."""

from string import Formatter
from typing import Any, Final

import pytest

from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_5, VERSIONS, Microversion
from cyborg_lite.api.openapi.routes import Route, list_routes
from cyborg_lite.errors import registry
from tests.builders.patches import build_program_patch, build_replace_patch
from tests.support.api.calls import build_path
from tests.support.api.conversation import ADMIN, NOVA, Answer, Client, build_persona
from tests.support.api.error_codes import check_code
from tests.support.api.patches import build_bind

ADDED = [route for route in list_routes() if route.since > MINIMUM]
WITH_LAST = [route for route in list_routes() if route.until]


@pytest.fixture(scope='module')
def shared_client() -> Client:
    """Return a client of a service without objects; no test adds one."""
    return Client()


@pytest.mark.parametrize('route', ADDED, ids=lambda route: route.operation_id)
def test_operation_too_old_microversion_names_the_needed_one(
    shared_client: Client, route: Route
) -> None:
    """OpenStack Cyborg has the paths of the hidden methods, but not the methods."""
    path = build_path(route)
    older = VERSIONS[VERSIONS.index(route.since) - 1]
    answer = shared_client.at(str(older)).send(route.method, path)
    assert answer.status == (405 if route.hidden else 406)
    assert f'microversion {route.since}' in answer.fault
    newer = shared_client.at(str(route.since)).send(route.method, path)
    assert newer.status not in (405, 406)


@pytest.mark.parametrize('route', WITH_LAST, ids=lambda route: route.operation_id)
def test_operation_too_new_microversion_names_the_last_one(
    shared_client: Client, route: Route
) -> None:
    last = route.until or MINIMUM
    path = build_path(route)
    assert shared_client.at(str(last)).send(route.method, path).status not in (405, 406)
    newer = VERSIONS[VERSIONS.index(last) + 1]
    answer = shared_client.at(str(newer)).send(route.method, path)
    assert answer.status == 406
    assert f'microversion {last} or earlier' in answer.fault


def test_only_changes_of_original_objects_are_hidden() -> None:
    assert {route.path for route in ADDED if route.hidden} == {
        '/v2/device_profiles/{device_profile}',
        '/v2/devices/{uuid}',
    }


UNKNOWN: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'
_STATUS: Final = build_replace_patch(status='maintaining')
_BODIES: Final[dict[str, Any]] = {
    'program_deployable': build_program_patch(),
    'update_deployable_program': build_program_patch(),
    'update_device': _STATUS,
    'update_host': _STATUS,
    'update_device_profile': build_replace_patch(enabled=False),
    'grant_device_profile_access': {'projects': ['a']},
    'accept_device_cleanings': {'name': 'Jo'},
    'bind_accelerator_request': {UNKNOWN: build_bind()},
}
WITH_NAME: Final = [
    (route, version)
    for version in VERSIONS
    for route in list_routes(version)
    if '{' in route.path
]
WITH_UUID: Final = [
    (route, version)
    for route, version in WITH_NAME
    if version >= V2_5 and '{uuid}' in route.path
]


def send(client: Client, route: Route, version: Microversion, name: str) -> Answer:
    """Send a valid request whose path has the name."""
    newer = client.as_({**NOVA, **ADMIN}, str(version))
    is_revocation = route.operation_id == 'revoke_device_profile_access'
    query = '?value=a' if is_revocation else ''
    body = _BODIES.get(route.operation_id)
    return newer.send(route.method, f'{build_path(route, name)}{query}', body)


@pytest.mark.parametrize(('route', 'version'), WITH_NAME)
def test_unknown_object_is_not_found(
    shared_client: Client, route: Route, version: Microversion
) -> None:
    answer = send(shared_client, route, version, UNKNOWN)
    assert (answer.status, 'not found' in answer.fault) == (404, True)


@pytest.mark.parametrize(('route', 'version'), WITH_UUID)
def test_malformed_uuid_in_path_is_not_found(
    shared_client: Client, route: Route, version: Microversion
) -> None:
    answer = send(shared_client, route, version, 'no-uuid')
    assert answer.status == 404
    assert 'no-uuid (not a UUID) not found' in answer.fault


@pytest.mark.parametrize(
    ('path', 'status'),
    [
        ('accelerator_requests', 400),
        ('attributes', 400),
        ('deployables', 400),
        ('devices', 404),
        ('jobs', 400),
    ],
)
def test_malformed_uuid_before_2_5(
    shared_client: Client, path: str, status: int
) -> None:
    assert shared_client.at('2.4').get(f'/{path}/no-uuid').status == status


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
    path = build_path(route)
    newest = client.at(str(MAXIMUM))
    newest.headers['X-Service-Roles'] = NOVA['X-Service-Roles']
    for status, target, headers in list_failures(route, path):
        raw = b'{}' if route.body else None
        answer = newest.send(route.method, target, raw=raw, headers=headers)
        check_code(client, answer, status)
