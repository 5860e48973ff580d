# SPDX-License-Identifier: Apache-2.0
"""Cursors: positions in sorted lists that outlive the rows which they name.

A cursor has the value by which its row is sorted, so the next page can be read after
the row is deleted. Clients treat the text as opaque. It is not signed: it selects where
a list continues, and never which rows a caller sees.
"""

import base64
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.text import format_value, is_storable

_FORMAT: Final = 1
# Characters of the text. Servers limit the length of a URL.
_MAX_LENGTH: Final = 2048
_TEXT: Final = re.compile('[A-Za-z0-9_-]+')
_NAME: Final = re.compile('[a-z_]{1,64}')

Value = str | int | bool | None  # a time is text in ISO 8601


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a row in a sorted list."""

    collection: str  # name of the collection of the row
    sort_key: str | None  # None: the order of creation
    descending: bool
    value: Value  # by which the row is sorted; None: no value, or no sort key
    row: int  # number that orders rows with equal values


def encode(cursor: Cursor) -> str | None:
    """Return the cursor as text of letters, digits, ``-`` and ``_``.

    :returns: None if the text would be too long for a URL
    """
    fields = [
        _FORMAT,
        cursor.collection,
        cursor.sort_key,
        cursor.descending,
        cursor.value,
        cursor.row,
    ]
    text = json.dumps(fields, ensure_ascii=False, separators=(',', ':'))
    encoded = base64.urlsafe_b64encode(text.encode()).decode().rstrip('=')
    return encoded if len(encoded) <= _MAX_LENGTH else None


def decode(text: str) -> Cursor:
    """Return the cursor of a text that a client sent.

    :raises InvalidInput: the text is not a cursor
    """
    cursor = _read(text)
    if cursor is None:
        raise InvalidInput(
            reason='marker must be a UUID or the marker of a next link, not '
            f'{format_value(text)}.'
        )
    return cursor


def _read(text: str) -> Cursor | None:
    """Return the cursor; None: the text is malformed."""
    if len(text) > _MAX_LENGTH or not _TEXT.fullmatch(text):
        return None
    try:
        fields = json.loads(base64.urlsafe_b64decode(text + '=' * (-len(text) % 4)))
    # A client can nest lists, and can write numbers that are too long to convert.
    except (ValueError, RecursionError):
        return None
    if type(fields) is not list or len(fields) != 6 or fields[0] != _FORMAT:
        return None
    return _build(*fields[1:])


def _build(*fields: Any) -> Cursor | None:
    """Return the cursor; None: a field is invalid. Any: JSON values."""
    collection, sort_key, descending, value, row = fields
    is_valid = (
        _is_name(collection)
        and (sort_key is None or _is_name(sort_key))
        and type(descending) is bool
        and (is_storable(value) if isinstance(value, str) else _is_plain(value))
        and type(row) is int
    )
    return Cursor(*fields) if is_valid else None


def _is_name(field: object) -> bool:
    return isinstance(field, str) and _NAME.fullmatch(field) is not None


def _is_plain(field: object) -> bool:
    return field is None or type(field) in (int, bool)
