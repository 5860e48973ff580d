# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of ARQ patches."""

from typing import Any

import pytest

from cyborg_lite.api.call import arq_patch
from cyborg_lite.api.microversion import V2_0, V2_1
from cyborg_lite.errors.arqs import InvalidPatch
from cyborg_lite.errors.base import Forbidden
from cyborg_lite.errors.requests import NotAcceptable
from cyborg_lite.model.arqs.arqs import Binding
from tests.support.api.calls import build_call
from tests.support.api.conversation import NOVA, PROJECT
from tests.support.api.patches import (
    INSTANCE,
    PROVIDER,
    UNKNOWN,
    build_add,
    build_bind,
    build_bind_with,
    build_bind_without,
    build_unbind,
)

OTHER = '11111111-2222-4333-8444-555555555555'


def read(body: dict[str, Any], **options: Any) -> arq_patch.ArqPatch:
    return arq_patch.parse_patch(build_call(body=body, **options))


def test_parse_patch_bind_returns_binding() -> None:
    patch = read({UNKNOWN: build_bind()})
    assert patch.bindings == {
        UNKNOWN: Binding('compute-1', PROVIDER, INSTANCE, project_id=None)
    }
    assert patch.arqs_to_unbind == ()


def test_parse_patch_order_of_operations_is_irrelevant() -> None:
    assert read({UNKNOWN: build_bind()[::-1]}) == read({UNKNOWN: build_bind()})


def test_parse_patch_normalizes_uuids() -> None:
    patch = read({UNKNOWN.upper(): build_bind_with('instance_uuid', INSTANCE.upper())})
    assert patch.bindings[UNKNOWN].instance_uuid == INSTANCE


def test_parse_patch_unbind_keeps_order() -> None:
    patch = read({UNKNOWN: build_unbind(), OTHER: build_unbind()})
    assert (patch.arqs_to_unbind, patch.bindings) == ((UNKNOWN, OTHER), {})


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ({'x': build_bind()}, 'x is not a UUID'),
        ({UNKNOWN: build_bind(), UNKNOWN.upper(): build_bind()}, 'is repeated'),
        ({UNKNOWN: build_bind(), OTHER: build_unbind()}, 'the operations must be'),
        ({UNKNOWN: [*build_bind(), *build_unbind()]}, 'the operations must be'),
        ({UNKNOWN: build_bind_without('hostname')}, 'lacks hostname'),
        (
            {UNKNOWN: [build_add('hostname', 'a')]},
            'lacks device_rp_uuid, instance_uuid',
        ),
        ({UNKNOWN: build_bind(None)}, 'lacks instance_uuid'),
        ({UNKNOWN: build_bind('x')}, '/instance_uuid must be a UUID'),
        (
            {UNKNOWN: build_bind_with('device_rp_uuid', 5)},
            '/device_rp_uuid must be a UUID',
        ),
        (
            {UNKNOWN: build_bind_with('hostname', '')},
            '/hostname must be a string of 1 to',
        ),
        (
            {UNKNOWN: build_bind_with('hostname', 'x' * 256)},
            '/hostname must be a string',
        ),
        ({UNKNOWN: build_bind_with('hostname', 'a\0')}, '/hostname must be a string'),
        (
            {UNKNOWN: build_bind(INSTANCE, build_add('hostname', 'b'))},
            '/hostname is repeated',
        ),
        (
            {UNKNOWN: [{**build_add('hostname', 'a'), 'path': 'hostname'}]},
            'the path .* does not exist',
        ),
        ({UNKNOWN: [build_add('state', 'Bound')]}, 'the path /state does not exist'),
        ({UNKNOWN: [build_add('hostname/x', 'a')]}, 'the path .* does not exist'),
    ],
)
def test_parse_patch_invalid_names_reason(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidPatch, match=reason):
        read(body)


def test_parse_patch_project_requires_admin_and_2_1() -> None:
    body = {UNKNOWN: build_bind(INSTANCE, build_add('project_id', PROJECT))}
    assert read(body, version=V2_1).bindings[UNKNOWN].project_id == PROJECT
    with pytest.raises(NotAcceptable, match=r'2\.1'):
        read(body, version=V2_0)
    with pytest.raises(Forbidden, match='project_id'):
        read(body, version=V2_1, headers=NOVA)


@pytest.mark.parametrize('project', ['', 'x' * 65, 5, None])
def test_parse_patch_project_must_be_short_text(project: Any) -> None:
    body = {UNKNOWN: build_bind(INSTANCE, build_add('project_id', project))}
    with pytest.raises(InvalidPatch, match='project_id'):
        read(body, version=V2_1)
