# SPDX-License-Identifier: Apache-2.0
"""Tests of the text of cursors, which clients may change."""

import base64
import json
from typing import Final

import pytest

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model import cursors


def pack(content: object) -> str:
    """Return JSON as the text of a cursor."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip('=')


VALID: Final = [1, 'devices', 'model', False, 'T4', 7]


@pytest.mark.parametrize(
    'text',
    [
        '',
        'nonsense',
        'W' * 5,
        'é',
        ' ' + pack(VALID),
        pack(VALID) + '=',
        pack(VALID)[:-1],
        pack(b'\xff\xfe'),
        pack(b'[' * 1000),
        pack(b'[1,' * 100),
        pack(b'9' * 1500),
        pack(VALID[:-1]),
        pack([*VALID, 1]),
        pack({'v': 1}),
        pack(None),
        pack([2, *VALID[1:]]),
        pack(['1', *VALID[1:]]),
        pack([1, 'DROP TABLE', *VALID[2:]]),
        pack([1, None, *VALID[2:]]),
        pack([1, 'devices', '', *VALID[3:]]),
        pack([1, 'devices', 5, *VALID[3:]]),
        pack([1, 'devices', 'model', 0, *VALID[4:]]),
        pack([1, 'devices', 'model', False, 1.5, 7]),
        pack([1, 'devices', 'model', False, float('nan'), 7]),
        pack([1, 'devices', 'model', False, ['T4'], 7]),
        pack([1, 'devices', 'model', False, {}, 7]),
        pack([1, 'devices', 'model', False, 'a\0', 7]),
        pack([1, 'devices', 'model', False, '\ud800', 7]),
        pack([1, 'devices', 'model', False, 'T4', True]),
        pack([1, 'devices', 'model', False, 'T4', '7']),
        pack([1, 'devices', 'model', False, 'T4', None]),
        pack([1, 'devices', 'model', False, 'x' * 3000, 7]),
    ],
)
def test_decode_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match='marker must be a UUID or the marker'):
        cursors.decode(text)
