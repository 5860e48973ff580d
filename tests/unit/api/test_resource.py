# SPDX-License-Identifier: Apache-2.0
"""A path answers the methods that it has, and names them to who tries another."""

from collections.abc import Mapping
from typing import ClassVar

import pytest

from cyborg_lite.api.microversion import V2_0, V2_3, V2_4, Microversion
from cyborg_lite.api.resource import Resource
from cyborg_lite.exceptions import MethodNotAllowed, NotFound
from tests.unit.api.calls import backing


class Thing(Resource):
    """Is read always, and changed since 2.4."""

    since: ClassVar[Mapping[str, Microversion]] = {'PATCH': V2_4}

    def get(self) -> str:
        return 'shown'

    def patch(self) -> str:
        return 'changed'


@pytest.fixture
def thing() -> Thing:
    return Thing(backing())


def test_a_method_of_http_is_a_method_of_python(thing: Thing) -> None:
    assert thing.handler('GET', V2_0)() == 'shown'
    assert thing.handler('PATCH', V2_4)() == 'changed'


def test_where_something_can_be_read_its_head_can(thing: Thing) -> None:
    assert thing.handler('HEAD', V2_0)() == 'shown'


@pytest.mark.parametrize(
    ('method', 'version', 'allowed'),
    [
        ('DELETE', V2_4, 'GET, HEAD, PATCH'),
        ('PATCH', V2_3, 'GET, HEAD'),
        ('below', V2_4, 'GET, HEAD, PATCH'),
        ('get', V2_4, 'GET, HEAD, PATCH'),
    ],
)
def test_another_method_is_refused_with_those_that_there_are(
    thing: Thing, method: str, version: Microversion, allowed: str
) -> None:
    with pytest.raises(MethodNotAllowed) as refused:
        thing.handler(method, version)
    assert refused.value.kwargs['allowed'] == allowed


def test_below_a_path_there_is_nothing_unless_it_says_so(thing: Thing) -> None:
    with pytest.raises(NotFound, match='elsewhere not found'):
        thing.below('elsewhere')
