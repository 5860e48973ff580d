# SPDX-License-Identifier: Apache-2.0
"""Arguments and answers of RPC methods as JSON values, by their annotations.

A long list of data classes is compressed. A page of a list has the cursor of its last
record beside the records.
"""

import dataclasses
import typing
from typing import Any, Final

from cyborg_lite.errors.daemons import MalformedMessage
from cyborg_lite.model.queries import Page
from cyborg_lite.rpc import compression, wire

# A shorter list costs less if it is not compressed.
_LONG: Final = 20  # records

_CURSOR: Final = 'cursor'
_RECORDS: Final = 'records'


# Any, in this module: annotations, values of any class, JSON values.
def dump_argument(value: Any, *, is_compressed: bool = False) -> Any:
    """Return an argument as a JSON value.

    :param is_compressed: True: a data class becomes compressed text
    """
    if is_compressed and dataclasses.is_dataclass(value):
        return compression.dump(value)
    return wire.dump(value)


def load_argument(annotation: Any, data: Any, *, is_compressed: bool = False) -> Any:
    """Convert a JSON value to an argument.

    :raises MalformedMessage: the value does not match the annotation
    """
    if is_compressed and _is_record_class(annotation):
        return compression.load(annotation, data)
    return wire.load(annotation, data)


def dump_answer(annotation: Any, value: Any) -> Any:
    """Return an answer as a JSON value."""
    if isinstance(value, Page):
        return {_CURSOR: value.cursor, _RECORDS: _dump_records(annotation, value)}
    return _dump_records(annotation, value)


def load_answer(annotation: Any, data: Any) -> Any:
    """Convert a JSON value to an answer, which is a ``Page`` if it has a cursor.

    :raises MalformedMessage: the value does not match the annotation
    """
    if find_record_class(annotation) is None or not isinstance(data, dict):
        return _load_records(annotation, data)
    cursor = data.get(_CURSOR)
    if not isinstance(cursor, str | None):
        raise MalformedMessage(reason='a cursor is not text')
    return Page.build(_load_records(annotation, data.get(_RECORDS)), cursor)


def _dump_records(annotation: Any, value: Any) -> Any:
    cls = find_record_class(annotation)
    if cls is not None and len(value) > _LONG:
        return compression.dump_list(cls, value)
    return wire.dump(value)


def _load_records(annotation: Any, data: Any) -> Any:
    if annotation is None:
        return None
    cls = find_record_class(annotation)
    if cls is not None and isinstance(data, str):
        return compression.load_list(cls, data)
    return wire.load(annotation, data)


def find_record_class(annotation: Any) -> type[Any] | None:
    """Return the data class of a list of records; None: not such a list."""
    if typing.get_origin(annotation) is not tuple:
        return None
    (cls, *_) = typing.get_args(annotation)
    return cls if _is_record_class(cls) else None


def _is_record_class(annotation: Any) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)
