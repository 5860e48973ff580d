# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of views."""

from wsme import types

from cyborg_lite.api.microversion import V2_3
from cyborg_lite.api.openapi.view_schemas import ViewSchemas
from cyborg_lite.api.views.shapes import UUID, nullable, optional, since


class InnerView(types.Base):  # type: ignore[misc]  # untyped base
    """An object inside another object."""

    uuid = UUID


class OuterView(types.Base):  # type: ignore[misc]  # untyped base
    inner = nullable(InnerView)
    newer = since(V2_3, int)
    rare = since(V2_3, optional([InnerView]))


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
