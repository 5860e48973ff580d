# SPDX-License-Identifier: Apache-2.0
"""Tests of the map of the API."""

from typing import Final

import pytest

from cyborg_lite.api import routes
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_4, Microversion
from cyborg_lite.api.openapi.routes import Route, list_routes
from cyborg_lite.api.routes import ROUTES
from cyborg_lite.errors.base import NotFound
from tests.support.api.conversation import Client

METHODS: Final = {'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'BREW'}
UUID: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'


@pytest.mark.parametrize('path', ROUTES)
def test_find_controller_every_route_is_reached(path: str) -> None:
    segments = path.split('/')[1:]
    values = [segment for segment in segments if segment.startswith('{')]
    for spelling in (path, f'{path.rstrip("/")}/'):
        assert routes.find_controller(spelling) == (ROUTES[path], values)


@pytest.mark.parametrize('path', [path for path in ROUTES if path.startswith('/v2/')])
def test_find_controller_without_version_is_the_same(path: str) -> None:
    unversioned = path.removeprefix('/v2')
    assert routes.find_controller(unversioned) == routes.find_controller(path)


@pytest.mark.parametrize(
    ('path', 'segment'),
    [
        ('/v2/foo', 'foo'),
        ('/foo/bar', 'foo'),
        ('/v2/v2', 'v2'),
        ('/v2/devices/u/foo', 'foo'),
        ('/v2/services/u/foo', 'foo'),
        ('//', ''),
    ],
)
def test_find_controller_unknown_path_names_segment(path: str, segment: str) -> None:
    with pytest.raises(NotFound) as error:
        routes.find_controller(path)
    assert error.value.kwargs['name'] == segment


def test_routes_parents_stand_before_children() -> None:
    paths = list(ROUTES)
    for path in paths[2:]:
        assert paths.index(path.rpartition('/')[0]) < paths.index(path)


def test_routes_controllers_are_unique() -> None:
    assert len(set(ROUTES.values())) == len(ROUTES)


@pytest.fixture(scope='module')
def shared_client() -> Client:
    """Return a client of all routes; no test changes its data."""
    return Client(prefix='')


@pytest.mark.parametrize('path', sorted({route.path for route in list_routes()}))
def test_other_methods_of_route_return_405(shared_client: Client, path: str) -> None:
    served = [route for route in list_routes() if route.path == path]
    names = dict.fromkeys(('uuid', 'same_uuid', 'device_profile', 'name'), UUID)
    for version in (MINIMUM, V2_4, MAXIMUM):
        client = shared_client.at(str(version))
        methods = {route.method for route in served}
        methods -= {route.method for route in served if is_hidden(route, version)}
        for method in METHODS - methods:
            answer = client.send(method, path.format_map(names), [{}])
            assert answer.status == 405, (method, version)
            allowed = set(answer.headers['Allow'].split(', '))
            assert allowed - {'HEAD'} == methods
            assert ('HEAD' in allowed) is ('GET' in methods)


def is_hidden(route: Route, version: Microversion) -> bool:
    return route.hidden and version < route.since
