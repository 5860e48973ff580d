# SPDX-License-Identifier: Apache-2.0
"""Tests of the identity of devices; more are in test_inventory_diff.py."""

from dataclasses import replace

import pytest

from cyborg_lite.model.inventory.facts import (
    DeviceFacts,
    deployable_name,
    device_facts,
    name_suffix,
)
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.model.inventory.identities import match_devices
from tests.builders.reports import card


def _match_and_store(*devices: Device) -> dict[str, DeviceFacts]:
    matches = match_devices({}, devices)
    return {name: device_facts(device, name) for name, (device, _) in matches.items()}


def test_match_devices_uses_serial_number() -> None:
    assert list(match_devices({}, [card(1, serial='s')])) == ['s']


def test_match_devices_without_serial_uses_slot_and_product() -> None:
    assert list(match_devices({}, [card(1)])) == ['0000:01:00.0 10de:1eb8']
    without_product_id = replace(card(1), std_board_info={})
    assert list(match_devices({}, [without_product_id])) == [
        '0000:01:00.0 10de:Tesla T4'
    ]


def test_match_devices_empty_serial_uses_slot() -> None:
    assert list(match_devices({}, [replace(card(1), hardware_id='')])) == [
        '0000:01:00.0 10de:1eb8'
    ]


def test_match_devices_preserves_most_specific_hardware_id() -> None:
    stored = _match_and_store(card(1))
    [(identity, (_, hardware_id))] = match_devices(
        stored, [card(1, serial='s')]
    ).items()
    assert identity in stored
    assert hardware_id == 's'
    stored = _match_and_store(card(1, serial='s'))
    [(identity, (_, hardware_id))] = match_devices(stored, [card(1)]).items()
    assert (identity, hardware_id) == ('s', 's')


def test_match_devices_never_returns_duplicate_identities() -> None:
    """A card moves into the slot of a card whose serial number is now unreadable."""
    stored = _match_and_store(card(1, serial='a'))
    matches = match_devices(stored, [card(1), card(2, serial='a')])
    assert len(matches) == 2
    assert matches['a'][0].control_address == '0000:02:00.0'


@pytest.mark.parametrize(
    ('name', 'suffix'),
    [
        ('h_01', ''),
        ('h_01_region0', '_region0'),
        ('h_01_region0_1', '_region0_1'),
        ('h_011', 'h_011'),
        ('h_odd', 'h_odd'),
    ],
)
def test_name_suffix_and_deployable_name_are_inverse(name: str, suffix: str) -> None:
    assert name_suffix(name, 'h_01') == suffix
    assert deployable_name(suffix, 'h_01') == name
