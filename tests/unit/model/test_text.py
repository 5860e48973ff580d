# SPDX-License-Identifier: Apache-2.0
"""What clients write can be kept, or is refused; and can be said back."""

from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.model.text import is_storable, shown

ANY_TEXT = st.text(st.characters())  # surrogates and NUL too


@given(ANY_TEXT)
def test_what_is_storable_has_utf8_and_no_nul(text: str) -> None:
    try:
        encoded = text.encode('utf-8')
    except UnicodeEncodeError:
        assert not is_storable(text)
    else:
        assert is_storable(text) == (b'\0' not in encoded)


@given(ANY_TEXT)
def test_what_is_shown_is_one_printable_line(text: str) -> None:
    seen = shown(text)
    assert seen.isprintable()
    assert seen.encode('utf-8').decode('utf-8') == seen


def test_a_long_text_is_cut() -> None:
    assert shown('x' * 81) == 'x' * 77 + '...'
    assert shown('x' * 80) == 'x' * 80
