# SPDX-License-Identifier: Apache-2.0
"""Tests of the map of the API."""

import pytest

from cyborg_lite.api import routes
from cyborg_lite.api.routes import ROUTES
from cyborg_lite.errors.base import NotFound


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
