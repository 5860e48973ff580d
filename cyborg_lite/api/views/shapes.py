# SPDX-License-Identifier: Apache-2.0
"""Types of the fields of a view: WSME types with properties for the API document.

A field of a plain WSME type is in every response and never null. Other fields use the
functions of this module:

    hostname = nullable(str)
    status = since(V2_3, enum_of(DeviceStatus))

The responses and the API document are built from the same fields, see ``api/openapi``.
"""

import copy
import enum
from typing import Any, Final

from wsme import types

from cyborg_lite.api.microversion import MINIMUM, Microversion


class Shape(types.UserType):  # type: ignore[misc]  # untyped base
    """A WSME type with properties for the API document."""

    def __init__(self, kind: Any, **schema: Any) -> None:
        """Store the arguments.

        :param kind: a WSME type, or another shape, which is copied
        :param schema: additional JSON Schema keywords
        """
        inner = kind if isinstance(kind, Shape) else None
        self.basetype: Any = inner.basetype if inner else resolve_wsme_type(kind)
        self.schema: dict[str, Any] = {**(inner.schema if inner else {}), **schema}
        self.nullable: bool = inner.nullable if inner else False
        self.optional: bool = inner.optional if inner else False
        self.since: Microversion = inner.since if inner else MINIMUM

    def validate(self, value: Any) -> Any:
        """Validate a value; WSME calls this method."""
        return types.validate_value(self.basetype, value)


class JsonValue(Shape):
    """A JSON value, which older microversions show as text."""

    def __init__(self, **schema: Any) -> None:
        # The keyword has no effect on values that are no text.
        super().__init__(JSON_TEXT, **schema)

    def validate(self, value: Any) -> Any:
        """Return the value; WSME has no type for a choice of types."""
        return value


def _copy(kind: Any) -> Shape:
    """Return a shape whose properties can be changed."""
    return copy.copy(kind) if isinstance(kind, Shape) else Shape(kind)


def nullable(kind: Any) -> Shape:
    """Return a shape for values that may be null."""
    shape = _copy(kind)
    shape.nullable = True
    return shape


def optional(kind: Any) -> Shape:
    """Return a shape for fields that may be missing."""
    shape = _copy(kind)
    shape.optional = True
    return shape


def since(version: Microversion, kind: Any) -> Shape:
    """Return a shape for fields that are missing before a microversion."""
    shape = _copy(kind)
    shape.since = version
    return shape


def read_since(kind: Any) -> Microversion:
    """Return the microversion that added a field of a type."""
    return kind.since if isinstance(kind, Shape) else MINIMUM


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


UUID: Final = Shape(str, format='uuid')
JSON_TEXT: Final = Shape(str, contentMediaType='application/json')
