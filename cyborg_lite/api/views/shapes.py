# SPDX-License-Identifier: Apache-2.0
"""What the fields of an answer hold: types of WSME, and what clients are told of them.

A field of a plain type is in every answer and never null. All else is said here:

    hostname = nullable(str)
    status = since(V2_3, one_of(DeviceStatus))

The API document and the answers are made of the same fields, see ``api/openapi``.
"""

import enum
from typing import Any, Final

from wsme import types

from cyborg_lite.api.microversion import MINIMUM, Microversion


class Shape(types.UserType):  # type: ignore[misc]  # untyped base
    """A type of WSME that knows more about its values.

    ``schema`` are keywords of JSON Schema beside those that follow from the type.
    """

    def __init__(self, kind: Any, **schema: Any) -> None:
        """:param kind: any type of WSME, or another shape, which is copied"""
        inner = kind if isinstance(kind, Shape) else None
        self.basetype: Any = inner.basetype if inner else wsme_type(kind)
        self.schema: dict[str, Any] = {**(inner.schema if inner else {}), **schema}
        self.nullable: bool = inner.nullable if inner else False
        self.optional: bool = inner.optional if inner else False
        self.since: Microversion = inner.since if inner else MINIMUM

    def validate(self, value: Any) -> Any:
        return types.validate_value(self.basetype, value)


def nullable(kind: Any) -> Shape:
    """Null where there is nothing to say; any type of WSME."""
    shape = Shape(kind)
    shape.nullable = True
    return shape


def optional(kind: Any) -> Shape:
    """Left out where there is nothing to say; any type of WSME."""
    shape = Shape(kind)
    shape.optional = True
    return shape


def since(version: Microversion, kind: Any) -> Shape:
    """Left out for clients of older microversions; any type of WSME."""
    shape = Shape(kind)
    shape.since = version
    return shape


def one_of(words: type[enum.StrEnum]) -> Shape:
    return Shape(str, enum=[str(word) for word in words])


def wsme_type(kind: Any) -> Any:
    """WSME knows these two short forms of a type only as that of a field."""
    if isinstance(kind, list):
        return types.ArrayType(kind[0])
    if isinstance(kind, dict):
        return types.DictType(*next(iter(kind.items())))
    return kind


UUID: Final = Shape(str, format='uuid')
JSON_TEXT: Final = Shape(str, contentMediaType='application/json')
