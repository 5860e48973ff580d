# SPDX-License-Identifier: Apache-2.0
"""Tests of the normal form of UUIDs."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.model.uuids import normalize_uuid


@given(st.uuids())
def test_normalize_uuid_accepts_common_spellings(value: uuid.UUID) -> None:
    for text in (str(value), str(value).upper(), value.hex, value.hex.upper()):
        assert normalize_uuid(text) == str(value)


@pytest.mark.parametrize(
    'text',
    [
        '',
        'x' * 32,
        '{47840318-1387-4d41-8b72-61a23362641d}',
        'urn:uuid:47840318-1387-4d41-8b72-61a23362641d',
        '47840318-1387-4d41-8b72-61a23362641d\n',
        '47840318138-7-4d41-8b72-61a23362641d',
        '47840318-1387-4d41-8b72-61a23362641',
        # Digits and letters of other scripts, which int() or lower() may accept.
        '\u06647840318-1387-4d41-8b72-61a23362641d',
        '\uff467840318-1387-4d41-8b72-61a23362641d',
    ],
)
def test_normalize_uuid_invalid_text_returns_none(text: str) -> None:
    assert normalize_uuid(text) is None


@given(st.text())
def test_normalize_uuid_arbitrary_text_returns_uuid_or_none(text: str) -> None:
    normalized_uuid = normalize_uuid(text)
    assert normalized_uuid is None or uuid.UUID(normalized_uuid) == uuid.UUID(text)
