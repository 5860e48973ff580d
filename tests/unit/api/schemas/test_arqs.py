# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of ARQ bodies."""

from typing import Any

import pytest

from cyborg_lite.api.schemas.arqs import CREATE, PATCH
from cyborg_lite.errors.base import InvalidInput

UUID = '5c9a477a-d3d4-426a-9e9c-b2660917780e'
OPERATION = {'op': 'add', 'path': '/hostname', 'value': 'compute-1'}


@pytest.mark.parametrize('schema', [CREATE, PATCH])
def test_examples_match_schema(schema: Any) -> None:
    for example in schema.document['examples']:
        schema.check(example)


@pytest.mark.parametrize(
    'body',
    [
        {'device_profile_name': 'gpu'},
        {'device_profile_name': ''},
        {'device_profile_name': 'gpu', 'image_uuid': None, 'other': 1},
    ],
)
def test_create_accepts_name_and_additional_keys(body: object) -> None:
    CREATE.check(body)


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ({}, 'lacks device_profile_name'),
        ({'device_profile_name': 5}, 'device_profile_name must be of type string'),
        ([], 'must be of type object'),
        (None, 'must be of type object'),
    ],
)
def test_create_invalid_body_raises(body: object, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        CREATE.check(body)


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ({}, 'must have at least 1 keys'),
        ({UUID: []}, 'must have at least 1 elements'),
        ({UUID: OPERATION}, 'must be of type array'),
        ({UUID: [{'op': 'add'}]}, 'lacks path'),
        ({UUID: [{**OPERATION, 'op': 'replace'}]}, 'must be add or remove'),
        ({UUID: [{**OPERATION, 'path': 1}]}, 'must be of type string'),
    ],
)
def test_patch_invalid_body_raises(body: object, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        PATCH.check(body)


def test_patch_accepts_several_arqs_and_operations() -> None:
    remove = {'op': 'remove', 'path': '/hostname'}
    PATCH.check({UUID: [OPERATION, remove], 'other': [remove]})
