# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of device profile bodies."""

from typing import Any

import pytest

from cyborg_lite.api.schemas.device_profiles import ACCESS, CREATE, EXPLAIN, PATCH
from cyborg_lite.errors.base import InvalidInput

PROFILE = {'name': 'gpu', 'groups': [{'resources:PGPU': '1'}]}


def build_profile(**fields: object) -> list[dict[str, object]]:
    return [{**PROFILE, **fields}]


@pytest.mark.parametrize('schema', [CREATE, PATCH, ACCESS, EXPLAIN])
def test_examples_match_schema(schema: Any) -> None:
    for example in schema.document['examples']:
        schema.check(example)


@pytest.mark.parametrize(
    'fields',
    [
        {},
        {'uuid': None, 'description': None},
        {'groups': [{'resources:PGPU': 1, 'accel:x': None}]},
        {'created_at': 'x'},
        # The model validates the keys of a group, with better messages.
        {'groups': [{'resources:PGPU': []}]},
    ],
)
def test_create_accepts_valid_profiles(fields: dict[str, object]) -> None:
    CREATE.check(build_profile(**fields))


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ({}, 'must be of type array'),
        ([], 'must have at least 1 elements'),
        ([PROFILE] * 101, 'must have at most 100 elements'),
        ([{'groups': PROFILE['groups']}], 'lacks name'),
        (build_profile(name='a b'), 'name must match'),
        (build_profile(name='gpu\n'), 'name must match'),
        (build_profile(groups=[]), 'groups must have at least 1 elements'),
        (build_profile(groups=['x']), r'groups\[0\] must be of type object'),
        (build_profile(description=5), 'description must be of type'),
    ],
)
def test_create_invalid_body_raises(body: object, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        CREATE.check(body)


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ([], 'at least 1'),
        ([{'op': 'remove', 'path': '/name', 'value': 1}], 'must be add or replace'),
        ([{'op': 'add', 'path': '/name'}], 'lacks value'),
    ],
)
def test_patch_invalid_body_raises(body: object, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        PATCH.check(body)


@pytest.mark.parametrize('project', ['', 'x' * 65, 'a b', None])
def test_access_invalid_project_raises(project: object) -> None:
    with pytest.raises(InvalidInput):
        ACCESS.check({'projects': [project]})


def test_explain_body_may_be_missing_or_empty() -> None:
    assert EXPLAIN.optional
    EXPLAIN.check({})
    EXPLAIN.check(None)
    with pytest.raises(InvalidInput, match='must be of type object or null'):
        EXPLAIN.check([])
