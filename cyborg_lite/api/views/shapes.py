# SPDX-License-Identifier: Apache-2.0
"""Types of the fields of a view: WSME types with properties for the API document.

A field of a plain WSME type is in every response and never null. Other fields use the
functions of this module:

    hostname = nullable(str)
    status = since(V2_3, enum_of(DeviceStatus))

The responses and the API document are built from the same fields, see ``encoding.py``
and ``api/openapi``.
"""

import copy
import enum
import re
from collections.abc import Callable
from typing import Any, Final

from wsme import types

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, Microversion

Convert = Callable[[Any, Call], Any]
"""Returns the JSON of a value for a call."""

_UUID: Final = re.compile('[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
HIDDEN: Final = '(hidden)'


class Shape(types.UserType):  # type: ignore[misc]  # untyped base
    """A WSME type with properties for the API document."""

    nullable: bool = False
    optional: bool = False
    since: Microversion = MINIMUM
    until: Microversion = MAXIMUM
    source: str | None = None  # None: the attribute has the name of the field

    def __init__(self, kind: Any, **schema: Any) -> None:
        """Store the arguments.

        :param kind: a WSME type, or another shape, which is copied
        :param schema: additional JSON Schema keywords
        """
        self.basetype: Any = resolve_wsme_type(kind)
        self.schema: dict[str, Any] = schema
        if isinstance(kind, Shape):
            self.__dict__.update(vars(kind), schema={**kind.schema, **schema})

    def validate(self, value: Any) -> Any:
        """Validate a value; WSME calls this method."""
        return types.validate_value(self.basetype, value)

    def compile(
        self, version: Microversion, compile_kind: Callable[[Any], Convert | None]
    ) -> Convert | None:
        """Return the function that converts a value to JSON.

        :param version: microversion of the response
        :param compile_kind: does the same for a WSME type
        :returns: None: the value is JSON
        """
        return compile_kind(self.basetype)


class Json(Shape):
    """A value that is JSON already, in the form that the kind describes."""

    def validate(self, value: Any) -> Any:
        """Return the value; WSME has no type for a choice of types."""
        return value

    def compile(
        self, version: Microversion, compile_kind: Callable[[Any], Convert | None]
    ) -> Convert | None:
        """Return None: there is nothing to convert."""
        return None


class _Text(Shape):
    """A text of the model in which the empty text stands for null."""

    def compile(
        self, version: Microversion, compile_kind: Callable[[Any], Convert | None]
    ) -> Convert | None:
        """Return the conversion of the empty text."""
        return lambda text, call: text or None


class _Reason(Shape):
    """A text whose UUIDs only administrators see.

    They may be the UUIDs of ARQs and instances of other projects.
    """

    def compile(
        self, version: Microversion, compile_kind: Callable[[Any], Convert | None]
    ) -> Convert | None:
        """Return the function that hides UUIDs."""
        empty = None if self.nullable else ''

        def convert(reason: str, call: Call) -> str | None:
            if not reason:
                return empty
            return reason if call.caller.is_admin else _UUID.sub(HIDDEN, reason)

        return convert


def _change(kind: Any, **properties: Any) -> Shape:
    """Return a shape with other properties."""
    shape = copy.copy(kind) if isinstance(kind, Shape) else Shape(kind)
    shape.__dict__.update(properties)
    return shape


def nullable(kind: Any) -> Shape:
    """Return a shape for values that may be null."""
    return _change(kind, nullable=True)


def optional(kind: Any) -> Shape:
    """Return a shape for fields that may be missing."""
    return _change(kind, optional=True)


def since(version: Microversion, kind: Any) -> Shape:
    """Return a shape for fields that are missing before a microversion."""
    return _change(kind, since=version)


def until(version: Microversion, kind: Any) -> Shape:
    """Return a shape for fields that are missing after a microversion."""
    return _change(kind, until=version)


def source(path: str, kind: Any) -> Shape:
    """Return a shape for fields with another name than the attribute of the model.

    :param path: name of the attribute, with dots for attributes of attributes
    """
    return _change(kind, source=path)


def shape_of(kind: Any) -> Shape:
    """Return a type as a shape, whose properties are the defaults of a plain type."""
    return kind if isinstance(kind, Shape) else _PLAIN


def has_field(kind: Any, version: Microversion) -> bool:
    """Check whether a microversion has a field of a type."""
    return shape_of(kind).since <= version <= shape_of(kind).until


def enum_of(values: type[enum.StrEnum]) -> Shape:
    """Return a shape for the values of an enumeration."""
    return Shape(str, enum=[str(value) for value in values])


def resolve_wsme_type(kind: Any) -> Any:
    """Expand ``[T]`` and ``{K: V}``, which WSME accepts only for fields."""
    if isinstance(kind, list):
        return types.ArrayType(kind[0])
    if isinstance(kind, dict):
        return types.DictType(*next(iter(kind.items())))
    return kind


_PLAIN: Final = Shape(str)
UUID: Final = Shape(str, format='uuid')
JSON_TEXT: Final = Shape(str, contentMediaType='application/json')
TEXT_OR_NULL: Final = nullable(_Text(str))
REASON: Final = _Reason(str)
REASON_OR_NULL: Final = nullable(REASON)
