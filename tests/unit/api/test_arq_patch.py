# SPDX-License-Identifier: Apache-2.0
"""Patches are understood as one bind or one unbind, or refused whole."""

from typing import Any

import pytest

from cyborg_lite.api import arq_patch
from cyborg_lite.api.microversion import V2_0, V2_1
from cyborg_lite.exceptions import Forbidden, InvalidPatch, NotAcceptable
from cyborg_lite.model.arqs import Binding
from tests.unit.api.calls import call
from tests.unit.api.controllers.patches import (
    INSTANCE,
    PROVIDER,
    UNKNOWN,
    add,
    bind,
    unbind,
    with_field,
    without,
)
from tests.unit.api.conversation import NOVA, PROJECT

OTHER = '11111111-2222-4333-8444-555555555555'


def read(body: dict[str, Any], **options: Any) -> arq_patch.Patch:
    return arq_patch.read(call(body=body, **options))


def test_a_bind_says_where_to() -> None:
    patch = read({UNKNOWN: bind()})
    assert patch.bindings == {
        UNKNOWN: Binding('compute-1', PROVIDER, INSTANCE, project_id=None)
    }
    assert patch.unbound == ()


def test_the_order_of_operations_does_not_matter() -> None:
    assert read({UNKNOWN: bind()[::-1]}) == read({UNKNOWN: bind()})


def test_uuids_come_in_any_spelling() -> None:
    patch = read({UNKNOWN.upper(): with_field('instance_uuid', INSTANCE.upper())})
    assert patch.bindings[UNKNOWN].instance_uuid == INSTANCE


def test_an_unbind_keeps_the_order_of_requests() -> None:
    patch = read({UNKNOWN: unbind(), OTHER: unbind()})
    assert (patch.unbound, patch.bindings) == ((UNKNOWN, OTHER), {})


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ({'x': bind()}, 'x is not a UUID'),
        ({UNKNOWN: bind(), UNKNOWN.upper(): bind()}, 'is there twice'),
        ({UNKNOWN: bind(), OTHER: unbind()}, 'all operations must be'),
        ({UNKNOWN: [*bind(), *unbind()]}, 'all operations must be'),
        ({UNKNOWN: without('hostname')}, 'lacks hostname'),
        ({UNKNOWN: [add('hostname', 'a')]}, 'lacks device_rp_uuid, instance_uuid'),
        ({UNKNOWN: bind(None)}, 'lacks instance_uuid'),
        ({UNKNOWN: bind('x')}, '/instance_uuid must be a UUID'),
        ({UNKNOWN: with_field('device_rp_uuid', 5)}, '/device_rp_uuid must be a UUID'),
        ({UNKNOWN: with_field('hostname', '')}, '/hostname must be a string of 1 to'),
        ({UNKNOWN: with_field('hostname', 'x' * 256)}, '/hostname must be a string'),
        ({UNKNOWN: with_field('hostname', 'a\0')}, '/hostname must be a string'),
        ({UNKNOWN: bind(INSTANCE, add('hostname', 'b'))}, '/hostname is there twice'),
        ({UNKNOWN: [{**add('hostname', 'a'), 'path': 'hostname'}]}, 'there is no path'),
        ({UNKNOWN: [add('state', 'Bound')]}, 'there is no path /state'),
        ({UNKNOWN: [add('hostname/x', 'a')]}, 'there is no path'),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    body: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidPatch, match=reason):
        read(body)


def test_a_project_is_for_administrators_who_speak_of_it() -> None:
    body = {UNKNOWN: bind(INSTANCE, add('project_id', PROJECT))}
    assert read(body, version=V2_1).bindings[UNKNOWN].project_id == PROJECT
    with pytest.raises(NotAcceptable, match=r'2\.1'):
        read(body, version=V2_0)
    with pytest.raises(Forbidden, match='project_id'):
        read(body, version=V2_1, headers=NOVA)


@pytest.mark.parametrize('project', ['', 'x' * 65, 5, None])
def test_a_project_is_a_short_text(project: Any) -> None:
    body = {UNKNOWN: bind(INSTANCE, add('project_id', project))}
    with pytest.raises(InvalidPatch, match='project_id'):
        read(body, version=V2_1)
