# SPDX-License-Identifier: Apache-2.0
"""A body is JSON of a sane size and depth, or refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.api.json_body import parse
from cyborg_lite.exceptions import InvalidInput

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_what_json_can_say_is_understood(document: Any) -> None:
    assert parse(json.dumps(document).encode(), depth=1000) == document


@pytest.mark.parametrize(
    'raw',
    [
        b'',
        b' ',
        b'{',
        b"{'a': 1}",
        b'{"a": 1,}',
        b'[1] x',
        b'NaN',
        b'[Infinity]',
        b'-Infinity',
        b'1e999',
        b'[-1e400]',
        b'9' * 5000,
        b'"\x00"',
        b'\x00',
        b'"\xff"',
        b'\xff\xfe[\x00]\x00',  # UTF-16
        '[]'.encode('utf-16-le'),
        b'\xef\xbb\xbf[]',  # a byte order mark
        b'\xed\xa0\x80',
        b'01',
        b'0x10',
        b'undefined',
    ],
)
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput, match='not valid JSON'):
        parse(raw, depth=16)


@pytest.mark.parametrize(
    ('opened', 'closed'), [(b'[', b']'), (b'{"a":', b'}'), (b'[{"a":', b'}]')]
)
def test_depth_is_limited(opened: bytes, closed: bytes) -> None:
    each = opened.count(b'[') + opened.count(b'{')
    fits = 16 // each
    parse(opened * fits + b'1' + closed * fits, depth=16)
    for times in (fits + 1, 100, 20_000):
        with pytest.raises(InvalidInput, match='deeper than 16'):
            parse(opened * times + b'1' + closed * times, depth=16)


def test_an_unclosed_bomb_is_refused() -> None:
    for bomb in (b'[' * 100_000, b'{"a":' * 20_000):
        with pytest.raises(InvalidInput):
            parse(bomb, depth=16)


@given(st.binary(max_size=50))
def test_any_bytes_are_json_or_refused(raw: bytes) -> None:
    try:
        document = parse(raw, depth=16)
    except InvalidInput:
        return
    assert json.loads(raw) == document
