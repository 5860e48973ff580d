# SPDX-License-Identifier: Apache-2.0
"""Tests that the document describes exactly the routes of the controllers."""

from typing import Any

from cyborg_lite.api.microversion import V2_0, V2_3, V2_4
from cyborg_lite.api.openapi.routes import Route, list_routes


def routes_by_name(version: Any = None) -> dict[str, Route]:
    return {f'{route.method} {route.path}': route for route in list_routes(version)}


def test_route_has_facts_of_decorators() -> None:
    route = routes_by_name()['PATCH /v2/accelerator_requests']
    assert (route.rule, route.status) == ('cyborg:arq:update', 202)
    assert route.service_for
    assert route.body
    assert not route.views


def test_route_is_listed_since_its_microversion() -> None:
    services, patch = 'GET /v2/services', 'PATCH /v2/device_profiles/{device_profile}'
    assert not {services, patch} & routes_by_name(V2_3).keys()
    assert {routes_by_name()[services].since, routes_by_name()[patch].since} == {V2_4}
    assert (routes_by_name()[services].hidden, routes_by_name()[patch].hidden) == (
        False,
        True,
    )


def test_newer_arguments_are_listed_since_2_4() -> None:
    assert routes_by_name(V2_4)['GET /v2/devices'].newer
    assert not routes_by_name(V2_0)['GET /v2/devices'].newer


def test_routes_without_rule_come_first() -> None:
    public = [name for name, route in routes_by_name().items() if route.rule is None]
    assert public == ['GET /', 'GET /v2', 'GET /v2/openapi.json']
    assert list(routes_by_name())[: len(public)] == public
