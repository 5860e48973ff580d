# SPDX-License-Identifier: Apache-2.0
"""Tests that too old microversions are refused, over all operations."""

from uuid import uuid4

import pytest

from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, VERSIONS
from cyborg_lite.api.openapi.routes import Route, list_routes
from tests.support.api.conversation import Client

ADDED = [route for route in list_routes(MAXIMUM) if route.since > MINIMUM]


@pytest.mark.parametrize('route', ADDED, ids=lambda route: route.operation_id)
def test_operation_too_old_microversion_names_the_needed_one(
    client: Client, route: Route
) -> None:
    """OpenStack Cyborg has the paths of the hidden methods, but not the methods."""
    identifiers = dict.fromkeys(('uuid', 'device_profile', 'name'), str(uuid4()))
    path = route.path.removeprefix('/v2').format(**identifiers)
    older = VERSIONS[VERSIONS.index(route.since) - 1]
    answer = client.at(str(older)).send(route.method, path)
    assert answer.status == (405 if route.hidden else 406)
    assert f'microversion {route.since}' in answer.fault
    newer = client.at(str(route.since)).send(route.method, path)
    assert newer.status not in (405, 406)


def test_only_changes_of_original_objects_are_hidden() -> None:
    assert {route.path for route in ADDED if route.hidden} == {
        '/v2/device_profiles/{device_profile}',
        '/v2/devices/{uuid}',
    }
