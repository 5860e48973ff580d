# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the views and of the bodies of requests."""

import inspect
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from wsme import types

from cyborg_lite.api.call.field_selection import LINKS
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, Microversion
from cyborg_lite.api.views.shapes import (
    Shape,
    resolve_wsme_type,
    shape_of,
)

Document = dict[str, Any]  # JSON

_PLAIN: Final[dict[Any, Document]] = {
    bool: {'type': 'boolean'},
    int: {'type': 'integer'},
    float: {'type': 'number'},
    str: {'type': 'string'},
    datetime: {'type': 'string', 'format': 'date-time'},
    dict: {'type': 'object'},
    bytes: {'type': 'object'},  # the text of an object
}


def describe_versions(since: Microversion, until: Microversion = MAXIMUM) -> Document:
    """Return the microversions of an element, which is deprecated if it has a last one.

    :param until: the last microversion that has the element
    """
    versions = {'min-ver': str(since)} if since > MINIMUM else {}
    if until == MAXIMUM:
        return {'x-openstack': versions} if versions else {}
    return {'deprecated': True, 'x-openstack': {**versions, 'max-ver': str(until)}}


def _find_name(view: type[Any]) -> str:
    """Return the name of the component of a view."""
    return view.__name__.removesuffix('View')


class ViewSchemas:
    """Builds JSON Schemas; object schemas are collected in ``components`` by name."""

    def __init__(self, version: Microversion | None = None) -> None:
        """Create a builder.

        :param version: microversion of the document; None: all of them
        """
        self.components: dict[str, Document] = {}
        self.oldest = version or MINIMUM
        self.newest = version or MAXIMUM

    def build_schema(self, kind: Any) -> Document:
        """Return the schema of a WSME type."""
        kind = resolve_wsme_type(kind)
        if types.iscomplex(kind):
            name = _find_name(kind)
            if name not in self.components:
                self.components[name] = {}  # a view may contain itself
                self.components[name] = self._build_object(kind)
            return {'$ref': f'#/components/schemas/{name}'}
        if isinstance(kind, Shape):
            return self._build_shape(kind)
        if isinstance(kind, types.ArrayType):
            return {'type': 'array', 'items': self.build_schema(kind.item_type)}
        if isinstance(kind, types.DictType):
            values = self.build_schema(kind.value_type)
            return {'type': 'object', 'additionalProperties': values}
        return dict(_PLAIN[kind])

    def build_partial_schema(
        self, view: type[Any], selectable: Collection[type[Any]]
    ) -> Document:
        """Return the schema of a response with some fields of its objects.

        :param view: the view of an object, or a view that contains one
        :param selectable: the views of objects whose fields a client may select
        """
        name = f'Partial{_find_name(view)}'
        if name not in self.components:
            schema = self._build_object(view)
            if view in selectable:
                schema['required'] = [*{LINKS}.intersection(schema['required'])]
            else:
                schema['properties'] |= self._build_partial_fields(view, selectable)
            self.components[name] = schema
        return {'$ref': f'#/components/schemas/{name}'}

    def _build_partial_fields(
        self, view: type[Any], selectable: Collection[type[Any]]
    ) -> dict[str, Document]:
        """Return the schemas of the fields that contain selectable objects."""
        schemas = {}
        for attribute in types.list_attributes(view):
            kind = attribute.datatype
            is_list = isinstance(kind, types.ArrayType)
            element = kind.item_type if is_list else kind
            if element in selectable:
                schema = self.build_partial_schema(element, selectable)
                schema = {'type': 'array', 'items': schema} if is_list else schema
                schemas[attribute.name] = schema
        return schemas

    def add_body(self, operation_id: str, schema: Mapping[str, Any]) -> Document:
        """Add the schema of the body of an operation, and return its reference.

        Its name becomes the name of a class in generated clients.
        """
        name = f'{operation_id.title().replace("_", "")}Body'
        self.components[name] = {'title': name, **schema}
        return {'$ref': f'#/components/schemas/{name}'}

    def _build_shape(self, shape: Shape) -> Document:
        schema = {**self.build_schema(shape.basetype), **shape.schema}
        if shape.nullable:
            schema = {'anyOf': [schema, {'type': 'null'}]}
        extension = describe_versions(shape.since, shape.until)
        return {**schema, **extension}

    def _build_object(self, view: Any) -> Document:
        fields = {
            attribute.name: attribute.datatype
            for attribute in types.list_attributes(view)
            if shape_of(attribute.datatype).since <= self.newest
            and self.oldest <= shape_of(attribute.datatype).until
        }
        schema = {
            'type': 'object',
            'required': [  # what every response has
                name
                for name, kind in fields.items()
                if not shape_of(kind).optional
                and shape_of(kind).since <= self.oldest
                and shape_of(kind).until >= self.newest
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
