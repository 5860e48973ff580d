# SPDX-License-Identifier: Apache-2.0
"""One UUID has one spelling, and nothing else passes for a UUID."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.model.uuids import canonical


@given(st.uuids())
def test_every_common_spelling_becomes_the_canonical_one(value: uuid.UUID) -> None:
    for text in (str(value), str(value).upper(), value.hex, value.hex.upper()):
        assert canonical(text) == str(value)


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
        # Digits and letters of other scripts, some of which int() or lower() take.
        '\u06647840318-1387-4d41-8b72-61a23362641d',
        '\uff467840318-1387-4d41-8b72-61a23362641d',
    ],
)
def test_nothing_else_is_a_uuid(text: str) -> None:
    assert canonical(text) is None


@given(st.text())
def test_any_text_is_a_uuid_or_none(text: str) -> None:
    found = canonical(text)
    assert found is None or uuid.UUID(found) == uuid.UUID(text)
