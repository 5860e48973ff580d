# SPDX-License-Identifier: Apache-2.0
"""Tests of the JSON parser."""

import json
from typing import Any

import pytest
from hypothesis import given

from cyborg_lite.api.call.json_body import parse
from cyborg_lite.errors.base import InvalidInput
from tests.builders.json_values import JSON


@given(JSON)
def test_parse_valid_json(document: Any) -> None:
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
def test_parse_invalid_json_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput, match='not valid JSON'):
        parse(raw, depth=16)


@pytest.mark.parametrize(
    ('opened', 'closed'), [(b'[', b']'), (b'{"a":', b'}'), (b'[{"a":', b'}]')]
)
def test_parse_too_deep_json_is_refused(opened: bytes, closed: bytes) -> None:
    count = opened.count(b'[') + opened.count(b'{')
    fits = 16 // count
    parse(opened * fits + b'1' + closed * fits, depth=16)
    for times in (fits + 1, 100, 20_000):
        with pytest.raises(InvalidInput, match='deeper than 16'):
            parse(opened * times + b'1' + closed * times, depth=16)
