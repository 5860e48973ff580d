# SPDX-License-Identifier: Apache-2.0
"""Tests of parsing a request."""

from io import BytesIO
from typing import Any, Final

import pytest

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.validation import JSON_PATCH, Schema
from cyborg_lite.api.microversion import MINIMUM, V2_2, V2_4, V2_5, Microversion
from cyborg_lite.api.middleware import MICROVERSION
from cyborg_lite.errors.base import Forbidden, InvalidInput
from cyborg_lite.errors.requests import (
    NotAcceptable,
    ServiceTokenRequired,
    UnsupportedMediaType,
)
from tests.support.api.calls import build_api_context, build_call, build_request
from tests.support.api.conversation import ADMIN, MEMBER, NOVA

LIST: Final = Schema({'type': 'array', 'minItems': 1})
MAYBE: Final = Schema({'type': ['object', 'null']}, optional=True)


def build_post(body: Any, content_type: str = 'application/json') -> Call:
    request = build_request('/v2/things', body, ADMIN)
    request.headers['Content-Type'] = content_type
    return Call(request, build_api_context())


def test_caller_is_read_from_headers() -> None:
    call = build_call(headers=MEMBER)
    assert (call.caller.user_id, call.caller.is_admin) == ('a' * 32, False)
    assert build_call().caller.is_admin


def test_microversion_default_is_minimum() -> None:
    bare = build_request('/v2', None, ADMIN)
    del bare.environ[MICROVERSION]
    assert Call(bare, build_api_context()).microversion == MINIMUM


def test_require_version_names_feature() -> None:
    build_call(version=V2_4).require_version(V2_4, 'Flying')
    with pytest.raises(NotAcceptable, match=r'Flying requires microversion 2\.4'):
        build_call(version=V2_2).require_version(V2_4, 'Flying')


def test_authorize_names_rule() -> None:
    build_call().authorize('cyborg:device_profile:create')
    with pytest.raises(Forbidden, match='cyborg:device_profile:create'):
        build_call(headers=MEMBER).authorize('cyborg:device_profile:create')


def test_require_service_without_token_is_refused() -> None:
    build_call(headers=NOVA).require_service('Binding')
    with pytest.raises(ServiceTokenRequired, match='Binding'):
        build_call(headers=ADMIN).require_service('Binding')


@pytest.mark.parametrize(
    ('path', 'quoted'),
    [
        ('/v2/devices/', 'v2/devices'),
        ('/v2/device%20profiles', 'v2/device%20profiles'),
        ('/v2/%C3%BC', 'v2/%C3%BC'),
    ],
)
def test_path_is_quoted_without_prefix(path: str, quoted: str) -> None:
    assert build_call(path).path == quoted


def test_parse_arguments_unknown_is_refused() -> None:
    call = build_call('/v2/things?limit=5')
    call.parse_arguments(('limit',), ())
    assert call.arguments == {'limit': '5'}
    with pytest.raises(InvalidInput, match='limit'):
        call.parse_arguments(('marker',), ())


@pytest.mark.parametrize(
    'content_type',
    [
        'application/json',
        'Application/JSON; charset=UTF-8',
        'application/json;charset="utf-8"',
    ],
)
def test_parse_body_accepts_json_content_types(content_type: str) -> None:
    call = build_post([1], content_type)
    call.parse_body(LIST)
    assert call.body == [1]


@pytest.mark.parametrize(
    'content_type', ['', 'text/plain', 'application/json; charset=latin-1']
)
def test_parse_body_other_content_type_is_refused(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        build_post([1], content_type).parse_body(LIST)


def test_parse_body_invalid_is_refused() -> None:
    with pytest.raises(InvalidInput, match='at least 1'):
        build_post([]).parse_body(LIST)


def test_parse_body_optional_may_be_missing() -> None:
    call = build_post(None, '')
    call.parse_body(MAYBE)
    with pytest.raises(UnsupportedMediaType):
        call.parse_body(LIST)


def test_parse_body_truncated_returns_400() -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError('the client has gone')

    broken = build_request('/v2/things', [1], ADMIN)
    broken.environ['wsgi.input'] = Broken()
    with pytest.raises(InvalidInput, match='cannot be read'):
        Call(broken, build_api_context()).parse_body(LIST)


@pytest.mark.parametrize(
    ('version', 'is_patch', 'accepted'),
    [(V2_5, True, True), (V2_5, False, False), (V2_4, True, False)],
    ids=str,
)
def test_patch_media_type_is_accepted_for_patches(
    version: Microversion, is_patch: bool, accepted: bool
) -> None:
    schema = Schema({'type': 'array'}, is_patch=is_patch)
    request = build_request('/v2/things', [{'op': 'add'}], ADMIN, version)
    request.headers['Content-Type'] = JSON_PATCH
    call = Call(request, build_api_context())
    if accepted:
        call.parse_body(schema)
        assert call.body == [{'op': 'add'}]
        return
    with pytest.raises(UnsupportedMediaType):
        call.parse_body(schema)
