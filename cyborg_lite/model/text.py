# SPDX-License-Identifier: Apache-2.0
"""Text of clients: what can be kept, and how it is said back."""

import re
from typing import Final

# PostgreSQL has no NUL, and half of a surrogate pair has no UTF-8.
_NOT_KEPT: Final = re.compile('[\0\ud800-\udfff]')
_MOST_SHOWN: Final = 80


def is_storable(text: str) -> bool:
    """Whether every database can keep it and every client can read it."""
    return _NOT_KEPT.search(text) is None


def shown(value: object) -> str:
    """What a client wrote, safe and short enough to stand in a message."""
    text = str(value)
    if len(text) > _MOST_SHOWN:
        text = text[: _MOST_SHOWN - 3] + '...'
    return ''.join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
