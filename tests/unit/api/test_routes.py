# SPDX-License-Identifier: Apache-2.0
"""Tests of the map of the API."""

import re
from typing import Final

import pytest

from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_4, Microversion
from cyborg_lite.api.openapi.routes import Route, list_routes
from tests.support.api.conversation import Client

METHODS: Final = {'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'BREW'}
UUID: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'


@pytest.fixture(scope='module')
def shared_client() -> Client:
    """Return a client of all routes; no test changes its data."""
    return Client(prefix='')


@pytest.mark.parametrize('path', sorted({route.path for route in list_routes()}))
def test_other_methods_of_route_return_405(shared_client: Client, path: str) -> None:
    served = [route for route in list_routes() if route.path == path]
    for version in (MINIMUM, V2_4, MAXIMUM):
        client = shared_client.at(str(version))
        methods = {route.method for route in served}
        methods -= {route.method for route in served if is_hidden(route, version)}
        for method in METHODS - methods:
            answer = client.send(method, re.sub('{[a-z_]+}', UUID, path), [{}])
            assert answer.status == 405, (method, version)
            allowed = set(answer.headers['Allow'].split(', '))
            assert allowed - {'HEAD'} == methods
            assert ('HEAD' in allowed) is ('GET' in methods)


def is_hidden(route: Route, version: Microversion) -> bool:
    return route.hidden and version < route.since
