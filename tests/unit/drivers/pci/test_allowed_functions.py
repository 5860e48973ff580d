# SPDX-License-Identifier: Apache-2.0
"""Tests of the entries that allow PCI functions: their syntax and what they select."""

from typing import Final

import pytest

from cyborg_lite.drivers.pci.allowed_functions import AllowedFunctions, parse_entries
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.ownership.nova_config import NovaPciFunction

_CARD: Final = NovaPciFunction('0000:3b:00.0', '1d55', '1001')


def _parse(text: str) -> AllowedFunctions:
    (entry,) = parse_entries([text])
    return entry


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('{"vendor_id": "1d55"}', True),
        ('{"vendor_id": "1d55", "class": "0x12"}', True),
        ('{"vendor_id": "1d55", "class": "02"}', False),
        ('{"vendor_id": "8086", "class": "12"}', False),
        ('{"class": "120000", "address": "*:3b:00.0"}', True),
        ('{"class": "120000", "address": "*:3c:00.0"}', False),
    ],
)
def test_covers_requires_all_selectors(text: str, expected: bool) -> None:
    assert _parse(text).covers(_CARD, '120000') is expected


def test_parse_entries_defaults_are_plain_pci() -> None:
    entry = _parse('{"vendor_id": "1d55"}')
    assert (entry.resource_class, entry.device_type) == ('CUSTOM_PCI', 'PCI')
    assert (entry.traits, entry.physical_network) == ((), '')
    assert entry.is_managed
    assert entry.cleaning is None


def test_parse_entries_settings_are_normalized() -> None:
    entry = _parse(
        '{"class": "12", "managed": "off", "traits": [" fast ", ""],'
        ' "physical_network": "physnet1", "device_type": "NIC"}'
    )
    assert entry.traits == ('CUSTOM_FAST',)
    assert (entry.device_type, entry.physical_network) == ('NIC', 'physnet1')
    assert not entry.is_managed


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
