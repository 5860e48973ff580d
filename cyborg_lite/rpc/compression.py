# SPDX-License-Identifier: Apache-2.0
"""Compressed arguments and results of RPC calls.

A host report repeats the same keys and nearly the same values for each attach handle,
so it shrinks to a twentieth. A list of devices or ARQs shrinks to a quarter. Each step
that encodes, signs and sends it then costs less.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from cyborg_lite.errors.daemons import MalformedMessage
from cyborg_lite.rpc import wire

T = TypeVar('T')

# A message is a tree, which needs no check for cycles.
_encode: Final = json.JSONEncoder(
    check_circular=False, separators=(',', ':'), default=wire.dump
).encode

# Bytes of JSON. A report within the limits of `model.report_rules` has less.
_MAX_SIZE: Final = 64 * 2**20
_UNLIMITED: Final = 0


def dump(value: Any) -> str:
    """Return a data class as compressed text. Any: see ``wire.dump``."""
    return _compress([_encode(wire.dump(value))], zlib.Z_DEFAULT_COMPRESSION)


def load(cls: type[T], text: object) -> T:
    """Convert compressed text to a data class.

    :param text: as received
    :raises MalformedMessage: the text is not compressed JSON, or is too long, or does
        not match the class
    """
    return wire.load(cls, _decompress(text, _MAX_SIZE))


def dump_list(cls: type[T], records: Sequence[T]) -> str:
    """Return a list of data classes as compressed text."""
    return _compress(_encode_columns(cls, records), zlib.Z_BEST_SPEED)


def load_list(cls: type[T], text: object) -> tuple[T, ...]:
    """Convert compressed text to a list of data classes, of any length.

    :raises MalformedMessage: as ``load``
    """
    return wire.load_columns(cls, _decompress(text, _UNLIMITED))


def _encode_columns(cls: type[T], records: Sequence[T]) -> Iterator[str]:
    """Yield the JSON text of a list by column, one column after the other.

    The text of a long list is never in memory as a whole.
    """
    delimiter = '{'
    for name, values in wire.dump_columns(cls, records):
        yield f'{delimiter}{_encode(name)}:{_encode(values)}'
        delimiter = ','
    yield '}' if records else '{}'


def _compress(parts: Iterable[str], level: int) -> str:
    stream = zlib.compressobj(level)
    content = [stream.compress(part.encode()) for part in parts]
    return base64.b64encode(b''.join([*content, stream.flush()])).decode()


# Any: JSON of any type.
def _decompress(text: object, limit: int) -> Any:
    if not isinstance(text, str):
        raise MalformedMessage(reason='a compressed argument is not text')
    stream = zlib.decompressobj()
    try:
        # The bytes are in no variable, so their memory is free before the parse.
        content = stream.decompress(
            base64.b64decode(text, validate=True), limit
        ).decode()
        if not stream.eof:
            raise MalformedMessage(reason='a compressed argument is too long or cut')
        return json.loads(content)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise MalformedMessage(reason='an argument is not compressed JSON') from None
