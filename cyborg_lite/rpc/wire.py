# SPDX-License-Identifier: Apache-2.0
"""Data classes of ``model`` to JSON-able values and back, by their annotations.

Fields that a newer peer added are ignored; those that an older one lacks take their
defaults. So a class may grow fields that have defaults without a new major version.
A class that states a ``VERSION`` is refused when the major number differs.
"""

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

from cyborg_lite.exceptions import InvalidInput

T = TypeVar('T')
Decoder = Callable[[Any], Any]  # what came off the wire is of no known type yet

_VERSION_KEY = 'v'


class MalformedMessage(InvalidInput):
    message = 'A message of another daemon is malformed: {reason}'
    advice = 'Check that all daemons run versions that may work together.'


def dump(value: Any) -> Any:
    """Any data class, or a container of them, as JSON would have it."""
    if dataclasses.is_dataclass(value):
        data = {
            name: dump(getattr(value, name))
            for name in _names(cast(Hashable, type(value)))
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
    """The data class that ``data`` describes.

    :raises MalformedMessage: a type or a major version does not fit
    """
    return cast(T, _decoder(cast(Hashable, cls))(data))


def load_all(cls: type[T], data: Any) -> tuple[T, ...]:
    """As ``load``, for a list."""
    decode = _decoder(cast(Hashable, cls))
    return tuple(decode(item) for item in _expect(list, data))


@functools.cache
def _names(cls: Hashable) -> tuple[str, ...]:
    return tuple(item.name for item in dataclasses.fields(cast(Any, cls)))


def _expect(kind: type[T] | tuple[type[T], ...], value: Any) -> T:
    # bool is an int to Python, and never to us.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise MalformedMessage(reason=f'{kind} expected, {type(value).__name__} found')
    return value


@functools.cache
def _decoder(annotation: Any) -> Decoder:
    """How to read a value of that type; built once for each."""
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
        return functools.partial(_read_word, annotation)
    return functools.partial(_expect, annotation)


def _read_time(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(_expect(str, value))
    except ValueError:
        raise MalformedMessage(reason='not a time') from None


def _read_word(words: type[enum.Enum], value: Any) -> enum.Enum:
    try:
        return words(value)
    except ValueError:
        raise MalformedMessage(reason=f'not a {words.__name__}') from None


def _dataclass_decoder(cls: type[Any]) -> Decoder:
    # Decoders of the fields are looked up at the first use: a class may hold itself.
    @functools.cache
    def decoders() -> dict[str, Decoder]:
        hints = typing.get_type_hints(cls)
        return {name: _decoder(hints[name]) for name in _names(cast(Hashable, cls))}

    version = getattr(cls, 'VERSION', None)

    def decode(value: Any) -> Any:
        data = _expect(dict, value)
        if version is not None:
            _check_version(cls, version, data.get(_VERSION_KEY))
        known = decoders()
        fields = {
            name: known[name](item) for name, item in data.items() if name in known
        }
        try:
            return cls(**fields)
        except TypeError:
            missing = sorted(set(known) - set(fields))
            reason = f'{cls.__name__} lacks {", ".join(missing)}'
            raise MalformedMessage(reason=reason) from None

    return decode


def _check_version(cls: type[Any], ours: str, theirs: Any) -> None:
    if str(theirs).partition('.')[0] != ours.partition('.')[0]:
        reason = f'{cls.__name__} of version {theirs}, {ours} is understood'
        raise MalformedMessage(reason=reason)
