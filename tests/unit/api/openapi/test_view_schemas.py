# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of views."""

from datetime import datetime
from typing import Any

import pytest
from wsme import types

from cyborg_lite.api.microversion import V2_0, V2_3, V2_4
from cyborg_lite.api.openapi.view_schemas import ViewSchemas
from cyborg_lite.api.views.shapes import UUID, nullable, optional, since


class InnerView(types.Base):  # type: ignore[misc]  # untyped base
    """An object inside another object."""

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
def test_build_schema_of_type(kind: Any, schema: dict[str, Any]) -> None:
    assert ViewSchemas().build_schema(kind) == schema


def test_build_schema_object_is_a_component() -> None:
    answers = ViewSchemas()
    assert answers.build_schema(OuterView) == {'$ref': '#/components/schemas/Outer'}
    assert answers.components['Inner'] == {
        'description': 'An object inside another object.',
        'type': 'object',
        'required': ['uuid'],
        'properties': {'uuid': {'type': 'string', 'format': 'uuid'}},
        'additionalProperties': False,
    }


@pytest.mark.parametrize(
    ('version', 'properties', 'required'),
    [
        (None, {'inner', 'newer', 'rare'}, {'inner'}),
        (V2_0, {'inner'}, {'inner'}),
        (V2_3, {'inner', 'newer', 'rare'}, {'inner', 'newer'}),
        (V2_4, {'inner', 'newer', 'rare'}, {'inner', 'newer'}),
    ],
)
def test_build_schema_depends_on_version(
    version: Any, properties: set[str], required: set[str]
) -> None:
    answers = ViewSchemas(version)
    answers.build_schema(OuterView)
    outer = answers.components['Outer']
    assert (set(outer['properties']), set(outer['required'])) == (properties, required)


class ListView(types.Base):  # type: ignore[misc]  # untyped base
    inners = [InnerView]  # noqa: RUF012  # WSME reads the type of a field here
    uuid = UUID


def test_partial_schema_requires_links_only() -> None:
    schemas = ViewSchemas()
    reference = schemas.build_partial_schema(ListView, (InnerView,))
    assert reference == {'$ref': '#/components/schemas/PartialList'}
    outer = schemas.components['PartialList']
    assert outer['properties']['inners']['items']['$ref'].endswith('/PartialInner')
    assert outer['required'] == ['inners', 'uuid']
    inner = schemas.components['PartialInner']
    assert (inner['required'], [*inner['properties']]) == ([], ['uuid'])
