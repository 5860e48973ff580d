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
        self.until: Microversion = inner.until if inner else MAXIMUM
        # None: the attribute of the model has the name of the field
        self.source: str | None = inner.source if inner else None

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


def until(version: Microversion, kind: Any) -> Shape:
    """Return a shape for fields that are missing after a microversion."""
    shape = _copy(kind)
    shape.until = version
    return shape


def source(path: str, kind: Any) -> Shape:
    """Return a shape for fields with another name than the attribute of the model.

    :param path: name of the attribute, with dots for attributes of attributes
    """
    shape = _copy(kind)
    shape.source = path
    return shape


def read_since(kind: Any) -> Microversion:
    """Return the microversion that added a field of a type."""
    return kind.since if isinstance(kind, Shape) else MINIMUM


def read_until(kind: Any) -> Microversion:
    """Return the last microversion that has a field of a type."""
    return kind.until if isinstance(kind, Shape) else MAXIMUM


def has_field(kind: Any, version: Microversion) -> bool:
    """Check whether a microversion has a field of a type."""
    return read_since(kind) <= version <= read_until(kind)


def read_source(kind: Any) -> str | None:
    """Return the attribute of the model; None: it has the name of the field."""
    return kind.source if isinstance(kind, Shape) else None


def read_optional(kind: Any) -> bool:
    """Return True if a field of a type may be missing."""
    return isinstance(kind, Shape) and kind.optional


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
TEXT_OR_NULL: Final = nullable(_Text(str))
REASON: Final = _Reason(str)
REASON_OR_NULL: Final = nullable(REASON)
