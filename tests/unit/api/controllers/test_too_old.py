# SPDX-License-Identifier: Apache-2.0
"""Tests that too old and too new microversions are refused, over all operations."""

from uuid import uuid4

import pytest

from cyborg_lite.api.microversion import MINIMUM, VERSIONS
from cyborg_lite.api.openapi.routes import Route, list_routes
from tests.support.api.conversation import Client

ADDED = [route for route in list_routes() if route.since > MINIMUM]
WITH_LAST = [route for route in list_routes() if route.until]


def build_path(route: Route) -> str:
    uuid = str(uuid4())
    names = ('uuid', 'same_uuid', 'device_profile', 'name')
    return route.path.removeprefix('/v2').format(**dict.fromkeys(names, uuid))


@pytest.mark.parametrize('route', ADDED, ids=lambda route: route.operation_id)
def test_operation_too_old_microversion_names_the_needed_one(
    client: Client, route: Route
) -> None:
    """OpenStack Cyborg has the paths of the hidden methods, but not the methods."""
    path = build_path(route)
    older = VERSIONS[VERSIONS.index(route.since) - 1]
    answer = client.at(str(older)).send(route.method, path)
    assert answer.status == (405 if route.hidden else 406)
    assert f'microversion {route.since}' in answer.fault
    newer = client.at(str(route.since)).send(route.method, path)
    assert newer.status not in (405, 406)


@pytest.mark.parametrize('route', WITH_LAST, ids=lambda route: route.operation_id)
def test_operation_too_new_microversion_names_the_last_one(
    client: Client, route: Route
) -> None:
    last = route.until or MINIMUM
    path = build_path(route)
    assert client.at(str(last)).send(route.method, path).status not in (405, 406)
    newer = VERSIONS[VERSIONS.index(last) + 1]
    answer = client.at(str(newer)).send(route.method, path)
    assert answer.status == 406
    assert f'microversion {last} or earlier' in answer.fault


def test_only_changes_of_original_objects_are_hidden() -> None:
    assert {route.path for route in ADDED if route.hidden} == {
        '/v2/device_profiles/{device_profile}',
        '/v2/devices/{uuid}',
    }
