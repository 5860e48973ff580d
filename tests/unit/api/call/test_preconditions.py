# SPDX-License-Identifier: Apache-2.0
"""Tests of the header If-Match."""

import pytest

from cyborg_lite.api.call.preconditions import parse_if_match
from cyborg_lite.errors.base import InvalidInput


@pytest.mark.parametrize(
    ('text', 'generation'),
    [(None, None), ('*', None), (' * ', None), ('"0"', 0), (' "17" ', 17)],
)
def test_parse_if_match(text: str | None, generation: int | None) -> None:
    assert parse_if_match(text) == generation


@pytest.mark.parametrize(
    'text',
    ['', '3', '""', '"x"', '"-1"', 'W/"3"', '"3", "4"', '"2147483648"', '"٣"', '"3'],
)
def test_parse_if_match_refuses_other_values(text: str) -> None:
    with pytest.raises(InvalidInput, match='If-Match must be'):
        parse_if_match(text)
