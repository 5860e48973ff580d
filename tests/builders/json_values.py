# SPDX-License-Identifier: Apache-2.0
"""Strategies of Hypothesis for JSON values."""

from typing import Final

from hypothesis import strategies as st

JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
"""Values that RFC 8259 allows."""

ANY_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
"""Values that Python reads as JSON, with NaN and with lone surrogates."""
