# SPDX-License-Identifier: Apache-2.0
"""Text from clients: checks before it is stored; forms of values in messages."""

import re
from typing import Final

# PostgreSQL cannot store NUL, and UTF-8 cannot encode a single surrogate.
_NOT_STORABLE: Final = re.compile('[\0\ud800-\udfff]')
_MAX_LENGTH: Final = 80


def is_storable(text: str) -> bool:
    """Check whether every database can store the text and every client can read it."""
    return _NOT_STORABLE.search(text) is None


def format_value(value: object) -> str:
    """Return a value of a client, shortened and escaped for a message."""
    text = str(value)
    if len(text) > _MAX_LENGTH:
        text = text[: _MAX_LENGTH - 3] + '...'
    if text.isprintable():
        return text
    return ''.join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, for example ``1 host`` or ``2 hosts``."""
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'
