# SPDX-License-Identifier: Apache-2.0
"""Tests of text that clients send, and of values in messages."""

from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.model.text import format_count, format_value, is_storable

ANY_TEXT = st.text(st.characters())  # including surrogates and NUL


@given(ANY_TEXT)
def test_is_storable_requires_utf8_without_nul(text: str) -> None:
    try:
        encoded = text.encode('utf-8')
    except UnicodeEncodeError:
        assert not is_storable(text)
    else:
        assert is_storable(text) == (b'\0' not in encoded)


@given(ANY_TEXT)
def test_format_value_returns_printable_line(text: str) -> None:
    formatted_text = format_value(text)
    assert formatted_text.isprintable()
    assert formatted_text.encode('utf-8').decode('utf-8') == formatted_text


def test_format_value_truncates_long_text() -> None:
    assert format_value('x' * 81) == 'x' * 77 + '...'
    assert format_value('x' * 80) == 'x' * 80


def test_format_count_uses_plural_except_for_one() -> None:
    texts = [format_count(number, 'host') for number in range(3)]
    assert texts == ['0 hosts', '1 host', '2 hosts']
