# SPDX-License-Identifier: Apache-2.0
"""Conversion between data classes and JSON: messages, payloads, files and columns.

The annotations of the fields define the format. Unknown fields are ignored and missing
fields take their defaults, so a class may gain fields that have defaults.

A class with ``OMITS_DEFAULTS`` becomes an object of the fields that differ from their
defaults.
"""

import base64
import binascii
import functools
import threading
import zlib
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, TypeVar, cast

import msgspec

from cyborg_lite.errors.daemons import MalformedData

T = TypeVar('T')

UNLIMITED: Final = 0

_MAX_REASON: Final = 200  # characters: the text may contain a value of the sender
_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_FIRST_USE: Final = threading.Lock()
_READ_CLASSES: Final[set[Any]] = set()


# Any, in this module: values of any class, and JSON values.
def dump(value: Any) -> Any:
    """Return data classes, and containers of data classes, as JSON values."""
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [dump(item) for item in value]
    if getattr(value, 'OMITS_DEFAULTS', False):
        return {
            name: dump(item)
            for name, default in _list_defaults(cast(Hashable, type(value))).items()
            if (item := getattr(value, name)) != default
        }
    return msgspec.to_builtins(value)


@functools.cache
def _list_defaults(cls: Hashable) -> dict[str, Any]:
    """Return the default of each field of a data class; MISSING: none."""
    return {
        item.name: item.default
        if item.default_factory is MISSING
        else item.default_factory()
        for item in fields(cast(Any, cls))
    }


def load(kind: type[T], data: Any) -> T:
    """Convert JSON values to a data class or a container of data classes.

    :raises MalformedData: a value has the wrong type, or a field is missing
    """
    _learn(kind)
    try:
        return msgspec.convert(data, kind)
    except _FAULTS as error:
        raise _describe(error) from None


def encode(value: Any) -> bytes:
    """Return data classes, and containers of data classes, as JSON text.

    :raises MalformedData: a text is not Unicode
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise _describe(error) from None


def decode(kind: type[T], content: bytes | str) -> T:
    """Convert JSON text as ``load`` converts JSON values.

    The cost of a text that does not match is that of its valid part.

    :raises MalformedData: as ``load``, or the text is not JSON
    """
    _learn(kind)
    try:
        return msgspec.json.decode(content, type=kind)
    except _FAULTS as error:
        raise _describe(error) from None


def _learn(kind: Any) -> None:
    """Have one thread at a time make msgspec read the fields of a class.

    msgspec reads them at the first use and keeps them with the class. Two threads that
    use a class for the first time at once end the process with a segmentation fault
    (msgspec 0.22).
    """
    if kind not in _READ_CLASSES:
        with _FIRST_USE:
            msgspec.json.Decoder(kind)
        _READ_CLASSES.add(kind)


def _describe(error: Exception) -> MalformedData:
    return MalformedData(reason=str(error)[:_MAX_REASON])


def pack(value: Any) -> str:
    """Return data classes, and containers of data classes, as compressed JSON text.

    A host report repeats the same keys and nearly the same values for each attach
    handle, so it shrinks to a twentieth. A list of ARQs shrinks to a sixth.

    :raises MalformedData: as ``encode``
    """
    content = zlib.compress(encode(value), zlib.Z_BEST_SPEED)
    return base64.b64encode(content).decode()


def unpack(kind: type[T], text: object, max_size: int) -> T:
    """Convert compressed JSON text as ``load`` converts JSON values.

    :param text: as received
    :param max_size: bytes of the JSON text, or UNLIMITED; a longer text is refused
        before it is parsed
    :raises MalformedData: as ``decode``, or the text is too long
    """
    if not isinstance(text, str):
        raise MalformedData(reason='a compressed value is not text')
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(base64.b64decode(text, validate=True), max_size)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise _describe(error) from None
    if not stream.eof:
        raise MalformedData(reason='a compressed value is too long or cut')
    return decode(kind, content)
