# SPDX-License-Identifier: Apache-2.0
"""Tests of the validation of bodies and of its error texts."""

from typing import Any

import pytest
from hypothesis import given

from cyborg_lite.api.call.validation import NO_CONTENT, Schema
from cyborg_lite.api.schemas import bodies
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.requests import InvalidBody
from tests.builders.json_values import JSON

SCHEMAS = (
    bodies.CREATE_ARQS,
    bodies.PATCH_ARQS,
    bodies.CREATE_ATTRIBUTE,
    bodies.PROGRAM,
    bodies.CREATE_PROFILES,
    NO_CONTENT,
)


def refusal(schema: Schema, body: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        schema.check(body)
    return caught.value.text


@pytest.mark.parametrize(
    ('schema', 'body', 'text'),
    [
        (bodies.CREATE_ARQS, [], 'The request body must be of type object.'),
        (bodies.CREATE_ARQS, {}, 'The request body lacks device_profile_name.'),
        (bodies.PATCH_ARQS, {}, 'The request body must have at least 1 keys.'),
        (bodies.PATCH_ARQS, {'u': []}, 'u must have at least 1 elements.'),
        (bodies.PATCH_ARQS, {'u': [{'op': 'add'}]}, 'u[0] lacks path.'),
        (
            bodies.PATCH_ARQS,
            {'u': [{'op': 'x', 'path': 'y'}]},
            'u[0].op must be add or remove.',
        ),
        (
            bodies.CREATE_PROFILES,
            [{'name': 'a', 'groups': [{}, 5]}],
            '[0].groups[1] must be of type object.',
        ),
        (
            bodies.PROFILE_ACCESS,
            {'projects': ['a\n']},
            'projects[0] must match ^[A-Za-z0-9_-]+$.',
        ),
        (
            bodies.CREATE_ATTRIBUTE,
            {'attribute': {}},
            'attribute lacks deployable_id, key, value.',
        ),
        (
            bodies.PROGRAM,
            [{'op': 'replace', 'path': '/x', 'value': []}],
            '[0].path must be /program.',
        ),
    ],
)
def test_check_error_names_place_and_rule(schema: Schema, body: Any, text: str) -> None:
    assert refusal(schema, body) == text


@pytest.mark.parametrize(
    ('schema', 'body', 'pointer'),
    [
        (bodies.CREATE_ARQS, [], ''),
        (bodies.CREATE_ARQS, {}, '/device_profile_name'),
        (bodies.PATCH_ARQS, {'a/b~c': [{'op': 'add'}]}, '/a~1b~0c/0/path'),
        (bodies.CREATE_PROFILES, [{'name': 'a', 'groups': [{}, 5]}], '/0/groups/1'),
        (bodies.CREATE_ATTRIBUTE, {'attribute': {}}, '/attribute/deployable_id'),
        (bodies.RETRY_CLEANING, {'unit': 'a', 'x/y': 1}, '/x~1y'),
    ],
)
def test_check_error_has_json_pointer(schema: Schema, body: Any, pointer: str) -> None:
    with pytest.raises(InvalidBody) as caught:
        schema.check(body)
    assert caught.value.kwargs['pointer'] == pointer


def test_check_error_writes_expected_values_as_json() -> None:
    assert refusal(Schema({'const': None}), 5) == 'The request body must be null.'
    text = refusal(Schema({'enum': [True, None, 'a']}), 5)
    assert text == 'The request body must be true or null or a.'


def test_check_error_does_not_repeat_body() -> None:
    assert 'secret' not in refusal(
        bodies.CREATE_ARQS, {'device_profile_name': ['secret']}
    )
    assert len(refusal(bodies.PATCH_ARQS, {'x' * 100_000: 5})) < 200


@pytest.mark.parametrize('schema', SCHEMAS)
@given(body=JSON)
def test_check_any_json_passes_or_has_short_error(schema: Schema, body: Any) -> None:
    text = ''
    try:
        schema.check(body)
    except InvalidInput as error:
        text = error.text
    assert text.isprintable()
    assert len(text) < 300


def test_check_long_list_stops_at_first_error() -> None:
    body = [{'name': 'a', 'groups': [5] * 50_000}]
    assert '[0].groups[0]' in refusal(bodies.CREATE_PROFILES, body)
