# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the views."""

import inspect
from datetime import datetime
from typing import Any, Final

from wsme import types

from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, Microversion
from cyborg_lite.api.views.shapes import Shape, resolve_wsme_type

Document = dict[str, Any]  # JSON

_PLAIN: Final[dict[Any, Document]] = {
    bool: {'type': 'boolean'},
    int: {'type': 'integer'},
    float: {'type': 'number'},
    str: {'type': 'string'},
    datetime: {'type': 'string', 'format': 'date-time'},
    dict: {'type': 'object'},
}


class ViewSchemas:
    """Builds JSON Schemas; object schemas are collected in ``components`` by name."""

    def __init__(self, version: Microversion | None = None) -> None:
        """Create a builder.

        :param version: microversion of the document; None: all of them
        """
        self.components: dict[str, Document] = {}
        self._oldest = version or MINIMUM
        self._newest = version or MAXIMUM

    def build_schema(self, kind: Any) -> Document:
        """Return the schema of a WSME type."""
        kind = resolve_wsme_type(kind)
        if types.iscomplex(kind):
            return self._build_reference(kind)
        if isinstance(kind, Shape):
            return self._build_shape(kind)
        if isinstance(kind, types.ArrayType):
            return {'type': 'array', 'items': self.build_schema(kind.item_type)}
        if isinstance(kind, types.DictType):
            values = self.build_schema(kind.value_type)
            return {'type': 'object', 'additionalProperties': values}
        return dict(_PLAIN[kind])

    def _build_shape(self, shape: Shape) -> Document:
        schema = {**self.build_schema(shape.basetype), **shape.schema}
        if shape.nullable:
            schema = {'anyOf': [schema, {'type': 'null'}]}
        if shape.since > MINIMUM:
            schema['x-openstack'] = {'min-ver': str(shape.since)}
        return schema

    def _build_reference(self, view: Any) -> Document:
        name = view.__name__.removesuffix('View')
        if name not in self.components:
            self.components[name] = {}  # a view may contain itself
            self.components[name] = self._build_object(view)
        return {'$ref': f'#/components/schemas/{name}'}

    def _build_object(self, view: Any) -> Document:
        fields = {
            attribute.name: attribute.datatype
            for attribute in types.list_attributes(view)
            if _read_since(attribute.datatype) <= self._newest
        }
        schema = {
            'type': 'object',
            'required': [
                name for name, kind in fields.items() if self._is_always_present(kind)
            ],
            'properties': {
                name: self.build_schema(kind) for name, kind in fields.items()
            },
            'additionalProperties': False,
        }
        docstring = vars(view).get('__doc__')
        if not docstring:
            return schema
        return {'description': inspect.cleandoc(docstring), **schema}

    def _is_always_present(self, kind: Any) -> bool:
        """Check whether every response has the field."""
        is_optional = isinstance(kind, Shape) and kind.optional
        return not is_optional and _read_since(kind) <= self._oldest


def _read_since(kind: Any) -> Microversion:
    return kind.since if isinstance(kind, Shape) else MINIMUM
