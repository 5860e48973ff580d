# SPDX-License-Identifier: Apache-2.0
"""Conversion of the data classes of ``model`` to JSON values and back.

The annotations of the fields define the format.

Unknown fields are ignored and missing fields take their defaults. A class may
therefore gain fields that have defaults without a new major version. A class that
states a ``VERSION`` is rejected when the major number differs.

A class with ``OMITS_DEFAULTS`` sends only the fields that differ from their defaults.
"""

import dataclasses
import enum
import functools
import itertools
import operator
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from cyborg_lite.errors.daemons import MalformedMessage

T = TypeVar('T')
Decoder = Callable[[Any], Any]  # from a JSON value of any type to a checked value
Encoder = Callable[[Any], Any]  # from a value of any type to a JSON value

_VERSION_KEY = 'v'


def dump(value: Any) -> Any:
    """Return a data class, or a container of data classes, as a JSON value."""
    kind = type(value)
    return value if kind in _PLAIN else _encoder(cast(Hashable, kind))(value)


# Types whose values are JSON values; most values of a list have one of them.
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


@functools.cache
def _encoder(kind: Hashable) -> Encoder:
    """Return the function that converts values of a class."""
    if dataclasses.is_dataclass(kind):
        return _dataclass_encoder(cast(type[Any], kind))
    return datetime.isoformat if kind is datetime else _encode


def _dataclass_encoder(cls: type[Any]) -> Encoder:
    names = _field_names(cast(Hashable, cls))
    if getattr(cls, 'OMITS_DEFAULTS', False):
        defaults = {name: getattr(cls(), name) for name in names}
        return functools.partial(_encode_changes, defaults)
    version = getattr(cls, 'VERSION', None)
    start = {} if version is None else {_VERSION_KEY: version}

    def encode(value: Any) -> Any:
        """Convert an object of the class to a JSON object."""
        data = dict(start)
        for name in names:
            item = getattr(value, name)
            data[name] = item if type(item) in _PLAIN else dump(item)
        return data

    return encode


def _encode_changes(defaults: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Convert the fields of an object that differ from their defaults."""
    return {
        name: dump(item)
        for name, default in defaults.items()
        if (item := getattr(value, name)) != default
    }


def _encode(value: Any) -> Any:
    """Convert a value that is not a data class."""
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [dump(item) for item in value]
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


# --- lists by column ---

# Types of JSON values that need no conversion.
_SCALARS: Final = frozenset({str, int, bool, type(None)})
_TEXT: Final = frozenset({str})
_TEXTS: Final = frozenset({str, type(None)})
_MAPPINGS: Final = frozenset({dict})


def dump_columns(
    cls: type[T], records: Sequence[T]
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield name and values of each field of a list of data classes.

    A list by column repeats no names. Values that JSON lacks are still in it: encode it
    with ``dump`` as the default function. No records have no columns.
    """
    names = _field_names(cast(Hashable, cls)) if records else ()
    for name in names:
        yield name, _dump_column([*map(operator.attrgetter(name), records)])


def _dump_column(values: Sequence[Any]) -> Sequence[Any]:
    """Convert times, which are the most frequent values that JSON lacks."""
    if datetime not in set(map(type, values)):
        return values
    return [None if value is None else value.isoformat() for value in values]


def load_columns(cls: type[T], data: Any) -> tuple[T, ...]:
    """Convert the values of each field to a list of data classes.

    :raises MalformedMessage: as ``load``, or the columns differ in length
    """
    columns = _expect(dict, data)
    lengths = {len(_expect(list, values)) for values in columns.values()} or {0}
    if len(lengths) > 1:
        raise _incomplete(cls)
    (number,) = lengths
    hints, names = _hints(cast(Hashable, cls)), _field_names(cast(Hashable, cls))
    fields = [
        _load_column(hints[name], columns[name])
        if name in columns
        else _repeat_default(cls, name, number)
        for name in names
    ]
    return tuple(map(cls, *fields))


def _repeat_default(cls: type[Any], name: str, number: int) -> list[Any]:
    """Return the default of a field for each object.

    :raises MalformedMessage: the field has no default
    """
    field = cls.__dataclass_fields__[name]
    if field.default_factory is not dataclasses.MISSING:
        return [field.default_factory() for _ in range(number)]
    if number and field.default is dataclasses.MISSING:
        raise _incomplete(cls)
    return [field.default] * number


def _incomplete(cls: type[Any]) -> MalformedMessage:
    return MalformedMessage(reason=f'the columns of {cls.__name__} are incomplete')


def _load_column(annotation: Any, values: list[Any]) -> list[Any]:
    kinds = set(map(type, values))
    if kinds <= _scalar_types(annotation):
        return values
    if kinds <= _MAPPINGS and _have_scalars(annotation, values):
        return values
    decode = _decoder(annotation)
    if kinds <= _TEXTS:  # equal texts, such as the words of an enumeration, decode once
        decoded = {value: decode(value) for value in set(values)}
        return [decoded[value] for value in values]
    return [decode(value) for value in values]


def _have_scalars(annotation: Any, objects: list[dict[str, Any]]) -> bool:
    """Check whether JSON objects are mappings whose values need no conversion."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if not (isinstance(origin, type) and issubclass(origin, Mapping)):
        return False
    values = itertools.chain.from_iterable(map(dict.values, objects))
    return set(map(type, values)) <= _scalar_types(arguments[1])


@functools.cache
def _scalar_types(annotation: Any) -> frozenset[type]:
    """Return the types whose values need no conversion; empty for other fields."""
    types_of_field = frozenset(typing.get_args(annotation) or (annotation,))
    return types_of_field if types_of_field <= _SCALARS else frozenset()


@functools.cache
def _hints(cls: Hashable) -> dict[str, Any]:
    """Return the annotations of the fields of a data class."""
    return typing.get_type_hints(cls)


# --- fields and values ---


@functools.cache
def _field_names(cls: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cast(Any, cls)))


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
    if origin in (tuple, Sequence):
        decode = _decoder(arguments[0])
        return lambda value: tuple(decode(item) for item in _expect(list, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_decoder(arguments[1])
    return _scalar_decoder(annotation)


def _mapping_decoder(annotation: Any) -> Decoder:
    decode, scalar_types = _decoder(annotation), _scalar_types(annotation)

    def decode_mapping(value: Any) -> dict[str, Any]:
        """Convert the values of a JSON object."""
        data = _expect(dict, value)
        if (
            set(map(type, data)) <= _TEXT
            and set(map(type, data.values())) <= scalar_types
        ):
            return data
        return {_expect(str, key): decode(item) for key, item in data.items()}

    return decode_mapping


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
        """Return the decoders of the fields."""
        hints = _hints(cast(Hashable, cls))
        return {
            name: _decoder(hints[name]) for name in _field_names(cast(Hashable, cls))
        }

    version = getattr(cls, 'VERSION', None)

    def decode(value: Any) -> Any:
        """Convert a JSON object to the class."""
        data = _expect(dict, value)
        if version is not None:
            _check_version(cls, version, data.get(_VERSION_KEY))
        readers = decoders()
        fields = {
            name: readers[name](item) for name, item in data.items() if name in readers
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
