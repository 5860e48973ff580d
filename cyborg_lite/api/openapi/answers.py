# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of what the views show."""

from datetime import datetime
from typing import Any, Final

from wsme import types

from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, Microversion
from cyborg_lite.api.views.shapes import Shape, wsme_type

Document = dict[str, Any]  # JSON

_PLAIN: Final[dict[Any, Document]] = {
    bool: {'type': 'boolean'},
    int: {'type': 'integer'},
    float: {'type': 'number'},
    str: {'type': 'string'},
    datetime: {'type': 'string', 'format': 'date-time'},
    dict: {'type': 'object'},
}


class Answers:
    """Schemas of views; those of objects are kept by their names."""

    def __init__(self, version: Microversion | None = None) -> None:
        """:param version: that the client speaks; None: any"""
        self.components: dict[str, Document] = {}
        self._oldest = version or MINIMUM
        self._newest = version or MAXIMUM

    def schema(self, kind: Any) -> Document:
        """:param kind: any type of WSME"""
        kind = wsme_type(kind)
        if types.iscomplex(kind):
            return self._reference(kind)
        if isinstance(kind, Shape):
            return self._of_shape(kind)
        if isinstance(kind, types.ArrayType):
            return {'type': 'array', 'items': self.schema(kind.item_type)}
        if isinstance(kind, types.DictType):
            values = self.schema(kind.value_type)
            return {'type': 'object', 'additionalProperties': values}
        return dict(_PLAIN[kind])

    def _of_shape(self, shape: Shape) -> Document:
        schema = {**self.schema(shape.basetype), **shape.schema}
        if shape.nullable:
            schema = {'anyOf': [schema, {'type': 'null'}]}
        if shape.since > MINIMUM:
            schema['x-openstack'] = {'min-ver': str(shape.since)}
        return schema

    def _reference(self, view: Any) -> Document:
        name = view.__name__.removesuffix('View')
        if name not in self.components:
            self.components[name] = {}  # it may hold others of its kind
            self.components[name] = self._object(view)
        return {'$ref': f'#/components/schemas/{name}'}

    def _object(self, view: Any) -> Document:
        fields = {
            one.name: one.datatype
            for one in types.list_attributes(view)
            if _since(one.datatype) <= self._newest
        }
        schema = {
            'type': 'object',
            'required': [name for name, kind in fields.items() if self._always(kind)],
            'properties': {name: self.schema(kind) for name, kind in fields.items()},
            'additionalProperties': False,
        }
        said = vars(view).get('__doc__')
        return {'description': said, **schema} if said else schema

    def _always(self, kind: Any) -> bool:
        """Whether every answer has such a field."""
        may_lack = isinstance(kind, Shape) and kind.optional
        return not may_lack and _since(kind) <= self._oldest


def _since(kind: Any) -> Microversion:
    return kind.since if isinstance(kind, Shape) else MINIMUM
