# SPDX-License-Identifier: Apache-2.0
"""Tests of the notes of an import, and of values that its converters read."""

from datetime import UTC, datetime

import pytest

from cyborg_lite.cyborg_import.notes import (
    Notes,
    normalize_address,
    parse_object,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def test_date_is_utc_or_time_of_import() -> None:
    notes = Notes(NOW)
    assert notes.date(datetime(2024, 1, 2)) == datetime(2024, 1, 2, tzinfo=UTC)
    assert notes.date(None) == NOW


@pytest.mark.parametrize(
    ('text', 'values'),
    [
        ('{"bus": "3b", "function": 1}', {'bus': '3b', 'function': '1'}),
        ('{"list": ["a"], "none": null}', {'list': '["a"]', 'none': 'null'}),
        ('[1]', {}),
        ('{', {}),
        ('', {}),
        (None, {}),
    ],
)
def test_parse_object_returns_strings(text: str | None, values: object) -> None:
    assert parse_object(text) == values


@pytest.mark.parametrize('bus', ['', '0x', 'g1', '3b '])
def test_invalid_address_is_none(bus: str) -> None:
    fields = {'domain': '0', 'bus': bus, 'device': '0', 'function': '0'}
    assert normalize_address(fields) is None
    del fields['bus']
    assert normalize_address(fields) is None
