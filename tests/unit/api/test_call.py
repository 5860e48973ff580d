# SPDX-License-Identifier: Apache-2.0
"""A request is read piece by piece, and each piece is checked."""

from io import BytesIO
from typing import Any, Final

import pytest

from cyborg_lite.api.call import Call
from cyborg_lite.api.frame import MICROVERSION
from cyborg_lite.api.microversion import MINIMUM, V2_2, V2_4
from cyborg_lite.api.validation import Schema
from cyborg_lite.exceptions import (
    Forbidden,
    InvalidInput,
    NotAcceptable,
    ServiceTokenRequired,
    UnsupportedMediaType,
)
from tests.unit.api.calls import backing, call, request
from tests.unit.api.conversation import ADMIN, MEMBER, NOVA

LIST: Final = Schema({'type': 'array', 'minItems': 1})
MAYBE: Final = Schema({'type': ['object', 'null']}, optional=True)


def sent(body: Any, content_type: str = 'application/json') -> Call:
    made = request('/v2/things', body, ADMIN)
    made.headers['Content-Type'] = content_type
    return Call(made, backing())


def test_who_asks_is_known() -> None:
    asked = call(headers=MEMBER)
    assert (asked.caller.user_id, asked.caller.is_admin) == ('a' * 32, False)
    assert call().caller.is_admin


def test_who_agreed_on_no_microversion_speaks_the_lowest() -> None:
    bare = request('/v2', None, ADMIN)
    del bare.environ[MICROVERSION]
    assert Call(bare, backing()).microversion == MINIMUM


def test_a_feature_names_the_version_that_it_needs() -> None:
    call(version=V2_4).require_version(V2_4, 'Flying')
    with pytest.raises(NotAcceptable, match=r'Flying needs microversion 2\.4'):
        call(version=V2_2).require_version(V2_4, 'Flying')


def test_a_rule_is_asked_and_named() -> None:
    call().authorise('cyborg:device_profile:create')
    with pytest.raises(Forbidden, match='cyborg:device_profile:create'):
        call(headers=MEMBER).authorise('cyborg:device_profile:create')


def test_only_a_service_may_do_what_needs_one() -> None:
    call(headers=NOVA).require_service('Binding')
    with pytest.raises(ServiceTokenRequired, match='Binding'):
        call(headers=ADMIN).require_service('Binding')


@pytest.mark.parametrize(
    ('path', 'shown'),
    [
        ('/v2/devices/', 'v2/devices'),
        ('/v2/device%20profiles', 'v2/device%20profiles'),
        ('/v2/%C3%BC', 'v2/%C3%BC'),
    ],
)
def test_a_path_is_such_as_may_stand_in_a_link(path: str, shown: str) -> None:
    assert call(path).path == shown


def test_arguments_that_nobody_knows_are_refused() -> None:
    asked = call('/v2/things?limit=5')
    asked.read_arguments(('limit',), ())
    assert asked.arguments == {'limit': '5'}
    with pytest.raises(InvalidInput, match='limit'):
        asked.read_arguments(('marker',), ())


@pytest.mark.parametrize(
    'content_type',
    [
        'application/json',
        'Application/JSON; charset=UTF-8',
        'application/json;charset="utf-8"',
    ],
)
def test_json_is_read_however_it_is_announced(content_type: str) -> None:
    asked = sent([1], content_type)
    asked.read_body(LIST)
    assert asked.body == [1]


@pytest.mark.parametrize(
    'content_type', ['', 'text/plain', 'application/json; charset=latin-1']
)
def test_what_is_announced_as_something_else_is_not_read(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        sent([1], content_type).read_body(LIST)


def test_a_body_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match='at least 1'):
        sent([]).read_body(LIST)


def test_a_body_may_be_left_out_where_it_says_nothing() -> None:
    asked = sent(None, '')
    asked.read_body(MAYBE)
    with pytest.raises(UnsupportedMediaType):
        asked.read_body(LIST)


def test_a_body_that_ends_early_is_the_fault_of_the_client() -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError('the client has gone')

    broken = request('/v2/things', [1], ADMIN)
    broken.environ['wsgi.input'] = Broken()
    with pytest.raises(InvalidInput, match='cannot be read'):
        Call(broken, backing()).read_body(LIST)
