# SPDX-License-Identifier: Apache-2.0
"""Canonical form of UUIDs: lower case, with hyphens."""

import re
from typing import Final

_HYPHENATED: Final = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_BARE: Final = re.compile(r'[0-9a-f]{32}')


def normalize_uuid(text: str) -> str | None:
    """Return the canonical form of a UUID, or None if the text is not a UUID.

    Any case is accepted, with all hyphens or none. ``uuid.UUID`` also accepts braces,
    ``urn:uuid:`` and misplaced hyphens, which would give one object many spellings.
    """
    # This check comes before lower(), which converts some other letters to ASCII.
    if not text.isascii():
        return None
    text = text.lower()
    if _HYPHENATED.fullmatch(text):
        return text
    if _BARE.fullmatch(text):
        fields = text[:8], text[8:12], text[12:16], text[16:20], text[20:]
        return '-'.join(fields)
    return None
