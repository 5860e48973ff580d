# SPDX-License-Identifier: Apache-2.0
"""Conversion of the data classes of ``model`` to JSON values and back.

The annotations of the fields define the format.

Unknown fields are ignored and missing fields take their defaults. A class may
therefore gain fields that have defaults without a new major version. A class that
states a ``VERSION`` is rejected when the major number differs.

A field whose name differs from its name in messages states the latter in its
metadata: ``field(metadata={'wire': 'turn'})``. Names in messages never change.
"""

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

from cyborg_lite.exceptions import MalformedMessage

T = TypeVar('T')
Decoder = Callable[[Any], Any]  # from a JSON value of any type to a checked value

_VERSION_KEY = 'v'


def dump(value: Any) -> Any:
    """Return a data class, or a container of data classes, as a JSON value."""
    if dataclasses.is_dataclass(value):
        data = {
            key: dump(getattr(value, name))
            for key, name in _field_names(cast(Hashable, type(value))).items()
        }
        version = getattr(value, 'VERSION', None)
        return data if version is None else {_VERSION_KEY: version, **data}
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [dump(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    return value


def load(cls: type[T], data: Any) -> T:
    """Convert a JSON object to a data class.

    :raises MalformedMessage: a value has the wrong type, a field is missing, or the
        major version differs
    """
    return cast(T, _decoder(cast(Hashable, cls))(data))


def load_all(cls: type[T], data: Any) -> tuple[T, ...]:
    """Convert a JSON list to data classes.

    :raises MalformedMessage: as ``load``
    """
    decode = _decoder(cast(Hashable, cls))
    return tuple(decode(item) for item in _expect(list, data))


@functools.cache
def _field_names(cls: Hashable) -> dict[str, str]:
    """Return the field names of a data class by their names in messages."""
    fields = dataclasses.fields(cast(Any, cls))
    return {field.metadata.get('wire', field.name): field.name for field in fields}


def _expect(kind: type[T] | tuple[type[T], ...], value: Any) -> T:
    # In Python bool is a subclass of int; in messages it is not a number.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise MalformedMessage(reason=f'expected {kind}, got {type(value).__name__}')
    return value


@functools.cache
def _decoder(annotation: Any) -> Decoder:
    """Return the decoder of a type; it is built once for each type."""
    if dataclasses.is_dataclass(annotation):
        return _dataclass_decoder(cast(type[Any], annotation))
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _optional_decoder(arguments)
    if origin is tuple:
        decode = _decoder(arguments[0])
        return lambda value: tuple(decode(item) for item in _expect(list, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        decode = _decoder(arguments[1])
        return lambda value: {
            _expect(str, key): decode(item)
            for key, item in _expect(dict, value).items()
        }
    return _scalar_decoder(annotation)


def _optional_decoder(arguments: tuple[Any, ...]) -> Decoder:
    (inner,) = (argument for argument in arguments if argument is not type(None))
    decode = _decoder(inner)
    return lambda value: None if value is None else decode(value)


def _scalar_decoder(annotation: Any) -> Decoder:
    if annotation is Any:
        return lambda value: value
    if annotation is datetime:
        return _read_time
    if annotation is float:
        return lambda value: float(_expect((int, float), value))
    if issubclass(annotation, enum.Enum):
        return functools.partial(_read_enum, annotation)
    return functools.partial(_expect, annotation)


def _read_time(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(_expect(str, value))
    except ValueError:
        raise MalformedMessage(reason='a timestamp is not in ISO 8601 format') from None


def _read_enum(enumeration: type[enum.Enum], value: Any) -> enum.Enum:
    try:
        return enumeration(value)
    except ValueError:
        raise MalformedMessage(
            reason=f'a value is not a {enumeration.__name__}'
        ) from None


def _dataclass_decoder(cls: type[Any]) -> Decoder:
    # Field decoders are built at the first use: a class may contain itself.
    @functools.cache
    def decoders() -> dict[str, Decoder]:
        """Return the decoders of the fields, by name in messages."""
        hints = typing.get_type_hints(cls)
        names = _field_names(cast(Hashable, cls))
        return {key: _decoder(hints[name]) for key, name in names.items()}

    version = getattr(cls, 'VERSION', None)

    def decode(value: Any) -> Any:
        """Convert a JSON object to the class."""
        data = _expect(dict, value)
        if version is not None:
            _check_version(cls, version, data.get(_VERSION_KEY))
        names, readers = _field_names(cast(Hashable, cls)), decoders()
        fields = {
            names[key]: readers[key](item)
            for key, item in data.items()
            if key in readers
        }
        try:
            return cls(**fields)
        except TypeError:
            missing = sorted(set(readers) - set(data))
            reason = f'{cls.__name__} lacks {", ".join(missing)}'
            raise MalformedMessage(reason=reason) from None

    return decode


def _check_version(cls: type[Any], supported: str, version: Any) -> None:
    if str(version).partition('.')[0] != supported.partition('.')[0]:
        reason = f'{cls.__name__} has version {version}, {supported} is supported'
        raise MalformedMessage(reason=reason)
