# SPDX-License-Identifier: Apache-2.0
"""Tests of malformed UUIDs in paths, over all operations."""

from typing import Any, Final

import pytest

from cyborg_lite.api.microversion import V2_5, VERSIONS, Microversion
from cyborg_lite.api.openapi.routes import Route, list_routes
from tests.builders.patches import build_program_patch
from tests.support.api.conversation import NOVA, Client
from tests.support.api.patches import INSTANCE, build_bind

_STATUS: Final = [{'op': 'replace', 'path': '/status', 'value': 'maintaining'}]
_BODIES: Final[dict[str, Any]] = {
    'program_deployable': build_program_patch(),
    'update_deployable_program': build_program_patch(),
    'update_device': _STATUS,
    'accept_device_cleanings': {'name': 'Jo'},
    'bind_accelerator_request': {INSTANCE: build_bind()},
}
ROUTES: Final = [
    (route, version)
    for version in VERSIONS
    if version >= V2_5
    for route in list_routes(version)
    if '{uuid}' in route.path
]


@pytest.mark.parametrize(('route', 'version'), ROUTES)
def test_malformed_uuid_in_path_is_not_found(
    client: Client, route: Route, version: Microversion
) -> None:
    path = route.path.removeprefix('/v2').format(uuid='no-uuid', same_uuid='no-uuid')
    body = _BODIES.get(route.operation_id)
    newer = client.at(str(version))
    newer.headers['X-Service-Roles'] = NOVA['X-Service-Roles']
    answer = newer.send(route.method, path, body)
    assert answer.status == 404
    assert 'no-uuid (not a UUID) not found' in answer.fault


@pytest.mark.parametrize(
    ('path', 'status'),
    [('accelerator_requests', 400), ('deployables', 400), ('devices', 404)],
)
def test_malformed_uuid_before_2_5(client: Client, path: str, status: int) -> None:
    assert client.at('2.4').get(f'/{path}/no-uuid').status == status
