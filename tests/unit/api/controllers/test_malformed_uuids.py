# SPDX-License-Identifier: Apache-2.0
"""Tests of malformed UUIDs in paths, over all operations."""

from typing import Any, Final

import pytest

from cyborg_lite.api.microversion import MAXIMUM
from cyborg_lite.api.openapi.routes import Route, list_routes
from tests.builders.patches import build_program_patch
from tests.support.api.conversation import NOVA, Client

_STATUS: Final = [{'op': 'replace', 'path': '/status', 'value': 'maintaining'}]
_BODIES: Final[dict[str, Any]] = {
    'program_deployable': build_program_patch(),
    'update_deployable_program': build_program_patch(),
    'update_device': _STATUS,
    'accept_device_cleanings': {'name': 'Jo'},
}
# The ARQ stands in the body.
_UNNAMED: Final = 'bind_accelerator_request'
ROUTES: Final = [
    route
    for route in list_routes(MAXIMUM)
    if '{uuid}' in route.path and route.operation_id != _UNNAMED
]


@pytest.mark.parametrize('route', ROUTES, ids=lambda route: route.operation_id)
def test_malformed_uuid_in_path_is_not_found(client: Client, route: Route) -> None:
    path = route.path.removeprefix('/v2').format(uuid='no-uuid', same_uuid='no-uuid')
    body = _BODIES.get(route.operation_id)
    newest = client.at(str(MAXIMUM))
    newest.headers['X-Service-Roles'] = NOVA['X-Service-Roles']
    answer = newest.send(route.method, path, body)
    assert answer.status == 404
    assert 'no-uuid (not a UUID) not found' in answer.fault


@pytest.mark.parametrize(
    ('path', 'status'),
    [('accelerator_requests', 400), ('deployables', 400), ('devices', 404)],
)
def test_malformed_uuid_before_2_5(client: Client, path: str, status: int) -> None:
    assert client.at('2.4').get(f'/{path}/no-uuid').status == status
