# SPDX-License-Identifier: Apache-2.0
"""What the document describes is what the controllers answer."""

from typing import Any

from cyborg_lite.api.controllers.root import Root
from cyborg_lite.api.microversion import MAXIMUM, V2_0, V2_3, V2_4
from cyborg_lite.api.openapi.routes import Route, routes
from cyborg_lite.api.resource import Resource

BACKING: Any = None  # controllers look at it only when they answer


def found(version: Any = MAXIMUM) -> dict[str, Route]:
    every = routes(Root(BACKING), version)
    return {f'{route.method} {route.path}': route for route in every}


def controllers(kind: type[Resource] = Resource) -> set[type[Resource]]:
    """All that there are."""
    below = kind.__subclasses__()
    return {*below, *(one for child in below for one in controllers(child))}


def test_every_method_of_every_controller_is_described() -> None:
    described = {(one.resource, one.method) for one in found().values()}
    forgotten = {
        f'{method} of {kind.__name__}'
        for kind in controllers()
        for method in ('GET', 'POST', 'PATCH', 'DELETE')
        if hasattr(getattr(kind, method.lower(), None), 'views')
        and (kind, method) not in described
        and kind.__module__.startswith('cyborg_lite.')
    }
    assert not forgotten, (
        f'{sorted(forgotten)}: name the method and the path among the operations of '
        'its rule in policies, and the API document has it'
    )


def test_a_route_knows_what_its_controller_says() -> None:
    route = found()['PATCH /v2/accelerator_requests']
    assert (route.rule, route.status) == ('cyborg:arq:update', 202)
    assert route.service_for
    assert route.body
    assert not route.views


def test_a_route_is_there_from_its_microversion_on() -> None:
    services, patch = 'GET /v2/services', 'PATCH /v2/device_profiles/{device_profile}'
    assert not {services, patch} & found(V2_3).keys()
    assert {found()[services].since, found()[patch].since} == {V2_4}
    assert (found()[services].hidden, found()[patch].hidden) == (False, True)


def test_newer_arguments_are_there_from_2_4_on() -> None:
    assert found(V2_4)['GET /v2/devices'].newer
    assert not found(V2_0)['GET /v2/devices'].newer


def test_routes_without_a_rule_come_first() -> None:
    public = [name for name, route in found().items() if route.rule is None]
    assert public == ['GET /', 'GET /v2', 'GET /v2/openapi.json']
    assert list(found())[: len(public)] == public
