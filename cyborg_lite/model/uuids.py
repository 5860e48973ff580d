# SPDX-License-Identifier: Apache-2.0
"""The one spelling of a UUID: lower case, with hyphens."""

import re
from typing import Final

_HYPHENATED: Final = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_BARE: Final = re.compile(r'[0-9a-f]{32}')


def canonical(text: str) -> str | None:
    """The UUID that ``text`` spells in any case, hyphens or none; None: it is none.

    Narrower than ``uuid.UUID``, which takes braces, ``urn:uuid:`` and hyphens
    anywhere, so that two different texts of one object stay rare.
    """
    # Before lower(): some other letters become ASCII by it.
    if not text.isascii():
        return None
    text = text.lower()
    if _HYPHENATED.fullmatch(text):
        return text
    if _BARE.fullmatch(text):
        parts = text[:8], text[8:12], text[12:16], text[16:20], text[20:]
        return '-'.join(parts)
    return None
