# SPDX-License-Identifier: Apache-2.0
"""Schemas of views."""

from datetime import datetime
from typing import Any

import pytest
from wsme import types

from cyborg_lite.api.microversion import V2_0, V2_3, V2_4
from cyborg_lite.api.openapi.answers import Answers
from cyborg_lite.api.views.shapes import UUID, nullable, optional, since


class InnerView(types.Base):  # type: ignore[misc]  # untyped base
    """Lies in another one."""

    uuid = UUID


class OuterView(types.Base):  # type: ignore[misc]  # untyped base
    inner = nullable(InnerView)
    newer = since(V2_3, int)
    rare = since(V2_3, optional([InnerView]))


@pytest.mark.parametrize(
    ('kind', 'schema'),
    [
        (str, {'type': 'string'}),
        (datetime, {'type': 'string', 'format': 'date-time'}),
        (UUID, {'type': 'string', 'format': 'uuid'}),
        ([int], {'type': 'array', 'items': {'type': 'integer'}}),
        (
            {str: bool},
            {'type': 'object', 'additionalProperties': {'type': 'boolean'}},
        ),
        (nullable(float), {'anyOf': [{'type': 'number'}, {'type': 'null'}]}),
        (since(V2_4, str), {'type': 'string', 'x-openstack': {'min-ver': '2.4'}}),
    ],
)
def test_a_type_has_a_schema(kind: Any, schema: dict[str, Any]) -> None:
    assert Answers().schema(kind) == schema


def test_objects_are_described_once_by_their_names() -> None:
    answers = Answers()
    assert answers.schema(OuterView) == {'$ref': '#/components/schemas/Outer'}
    assert answers.components['Inner'] == {
        'description': 'Lies in another one.',
        'type': 'object',
        'required': ['uuid'],
        'properties': {'uuid': {'type': 'string', 'format': 'uuid'}},
        'additionalProperties': False,
    }


@pytest.mark.parametrize(
    ('version', 'shown', 'required'),
    [
        (None, {'inner', 'newer', 'rare'}, {'inner'}),
        (V2_0, {'inner'}, {'inner'}),
        (V2_3, {'inner', 'newer', 'rare'}, {'inner', 'newer'}),
        (V2_4, {'inner', 'newer', 'rare'}, {'inner', 'newer'}),
    ],
)
def test_a_version_says_what_is_there(
    version: Any, shown: set[str], required: set[str]
) -> None:
    answers = Answers(version)
    answers.schema(OuterView)
    outer = answers.components['Outer']
    assert (set(outer['properties']), set(outer['required'])) == (shown, required)
