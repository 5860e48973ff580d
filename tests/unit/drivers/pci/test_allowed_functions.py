# SPDX-License-Identifier: Apache-2.0
"""Tests of the entries that allow PCI functions: their syntax and what they select."""

import pytest

from cyborg_lite.drivers.pci.allowed_functions import parse_entries
from cyborg_lite.errors.daemons import ConfigurationError


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('not JSON', 'is not JSON'),
        ('{"vendor_id": "xyz"}', 'invalid id'),
        ('{"address": {"bus": "["}}', 'pattern'),
        ('{"vendor": "8086"}', 'unknown key vendor'),
        ('{"managed": "no"}', 'name at least one of'),
        ('{"vendor_id": "8086", "cleaning": "often"}', 'cleaning must be one of never'),
        ('{"vendor_id": "8086", "device_type": "TPU"}', 'device_type must be'),
        ('{"vendor_id": "8086", "managed": "perhaps"}', 'perhaps'),
        ('{"vendor_id": "8086", "traits": 3}', 'traits must be a list'),
        ('{"vendor_id": "8086", "class": 3}', 'class must be a string'),
    ],
)
def test_parse_entries_invalid_entry_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_entries([text])


def test_parse_entries_accepts_list_and_standard_class() -> None:
    text = '[{"vendor_id": "8086", "resource_class": "pgpu"}, {"class": "12"}]'
    entries = parse_entries([text])
    assert [entry.resource_class for entry in entries] == ['PGPU', 'CUSTOM_PCI']


@pytest.mark.parametrize('digits', ['', '0', 'zz', '0302001'])
def test_class_that_is_no_class_code_is_refused(digits: str) -> None:
    with pytest.raises(ConfigurationError, match='class must be 2 to 6 hex'):
        parse_entries([f'{{"vendor_id": "10de", "class": "{digits}"}}'])
