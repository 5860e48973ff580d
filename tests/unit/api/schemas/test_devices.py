# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of bodies of devices."""

from typing import Any

import pytest

from cyborg_lite.api.schemas.devices import ACTION, PATCH
from cyborg_lite.errors.base import InvalidInput


def build_patch(path: str, value: Any, op: str = 'replace') -> list[dict[str, Any]]:
    return [{'op': op, 'path': path, 'value': value}]


@pytest.mark.parametrize('schema', [ACTION, PATCH])
def test_examples_match_schema(schema: Any) -> None:
    for example in schema.document['examples']:
        schema.check(example)


@pytest.mark.parametrize('body', [None, {}, {'ignored': 1}])
def test_action_needs_no_body(body: object) -> None:
    ACTION.check(body)


@pytest.mark.parametrize(
    'body',
    [
        [],
        build_patch('/status', 'enabled') * 3,
        build_patch('/status', 'enabled', 'remove'),
        build_patch('/name', 'x'),
        build_patch('/mode', 5),
        build_patch('/reason', 'x' * 256),
        build_patch('/configuration', 'nvidia'),
        build_patch('/configuration', {'set': 'nvidia', 'force': True}),
        build_patch('/configuration', {'settings': {}}),
    ],
)
def test_patch_invalid_body_is_refused(body: Any) -> None:
    with pytest.raises(InvalidInput):
        PATCH.check(body)
