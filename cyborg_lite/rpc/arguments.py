# SPDX-License-Identifier: Apache-2.0
"""Arguments and answers of RPC methods as JSON values, by their annotations.

A long list of data classes is compressed. A page of a list has the cursor of its last
record beside the records.
"""

import dataclasses
import typing
from typing import Any, Final

from cyborg_lite import codec
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model.queries import Page

# A shorter list costs less if it is not compressed.
_LONG: Final = 20  # records

MAX_SIZE: Final = 16 * 2**20
"""Bytes of JSON in compressed text that an agent sends."""

_CURSOR: Final = 'cursor'
_RECORDS: Final = 'records'


# Any, in this module: annotations, values of any class, JSON values.
def dump_argument(value: Any, *, is_compressed: bool = False) -> Any:
    """Return an argument as a JSON value.

    :param is_compressed: True: a data class becomes compressed text
    """
    if is_compressed and dataclasses.is_dataclass(value):
        return codec.pack(value)
    return codec.dump(value)


def load_argument(annotation: Any, data: Any, *, is_compressed: bool = False) -> Any:
    """Convert a JSON value to an argument.

    :raises MalformedData: the value does not match the annotation, or is too long
    """
    if is_compressed and _is_record_class(annotation):
        return codec.unpack(annotation, data, MAX_SIZE)
    return codec.load(annotation, data)


def dump_answer(annotation: Any, value: Any) -> Any:
    """Return an answer as a JSON value."""
    if isinstance(value, Page):
        return {_CURSOR: value.cursor, _RECORDS: _dump_records(annotation, value)}
    return _dump_records(annotation, value)


def load_answer(annotation: Any, data: Any, max_size: int = codec.UNLIMITED) -> Any:
    """Convert a JSON value to an answer, which is a ``Page`` if it has a cursor.

    :param max_size: bytes of JSON in compressed text
    :raises MalformedData: the value does not match the annotation, or is too long
    """
    if typing.get_origin(annotation) is not tuple or not isinstance(data, dict):
        return _load_records(annotation, data, max_size)
    cursor = data.get(_CURSOR)
    if not isinstance(cursor, str | None):
        raise MalformedData(reason='a cursor is not text')
    return Page.build(_load_records(annotation, data.get(_RECORDS), max_size), cursor)


def _dump_records(annotation: Any, value: Any) -> Any:
    if is_list_of_records(annotation) and len(value) > _LONG:
        return codec.pack(value)
    return codec.dump(value)


def _load_records(annotation: Any, data: Any, max_size: int) -> Any:
    if annotation is None:
        return None
    if is_list_of_records(annotation) and isinstance(data, str):
        return codec.unpack(annotation, data, max_size)
    return codec.load(annotation, data)


def is_list_of_records(annotation: Any) -> bool:
    """Check whether an annotation is a list of data classes."""
    if typing.get_origin(annotation) is not tuple:
        return False
    return _is_record_class(typing.get_args(annotation)[0])


def _is_record_class(annotation: Any) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)
