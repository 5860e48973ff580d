# SPDX-License-Identifier: Apache-2.0
"""Which card is which; more of it in test_inventory_diff.py."""

from dataclasses import replace

import pytest

from cyborg_lite.model.identities import identified
from cyborg_lite.model.inventory import Device
from cyborg_lite.model.inventory_facts import (
    DeviceFacts,
    device_facts,
    name_of,
    part_of,
)
from tests.fakes.cards import card


def _known(*devices: Device) -> dict[str, DeviceFacts]:
    found = identified({}, devices)
    return {name: device_facts(device, name) for name, (device, _) in found.items()}


def test_a_serial_number_is_the_identity() -> None:
    assert list(identified({}, [card(1, serial='s')])) == ['s']


def test_without_one_it_is_the_slot_and_the_product() -> None:
    assert list(identified({}, [card(1)])) == ['0000:01:00.0 10de:1eb8']
    unnumbered = replace(card(1), std_board_info={})
    assert list(identified({}, [unnumbered])) == ['0000:01:00.0 10de:Tesla T4']


def test_an_empty_serial_number_is_none() -> None:
    assert list(identified({}, [replace(card(1), hardware_id='')])) == [
        '0000:01:00.0 10de:1eb8'
    ]


def test_the_best_number_that_was_ever_read_is_kept() -> None:
    known = _known(card(1))
    [(identity, (_, hardware_id))] = identified(known, [card(1, serial='s')]).items()
    assert identity in known
    assert hardware_id == 's'
    known = _known(card(1, serial='s'))
    [(identity, (_, hardware_id))] = identified(known, [card(1)]).items()
    assert (identity, hardware_id) == ('s', 's')


def test_two_cards_never_share_an_identity() -> None:
    """One moved in where the other, whose number cannot be read now, has been."""
    known = _known(card(1, serial='a'))
    found = identified(known, [card(1), card(2, serial='a')])
    assert len(found) == 2
    assert found['a'][0].address == '0000:02:00.0'


@pytest.mark.parametrize(
    ('name', 'part'),
    [
        ('h_01', ''),
        ('h_01_region0', '_region0'),
        ('h_01_region0_1', '_region0_1'),
        ('h_011', 'h_011'),
        ('h_odd', 'h_odd'),
    ],
)
def test_names_and_parts_say_the_same(name: str, part: str) -> None:
    assert part_of(name, 'h_01') == part
    assert name_of(part, 'h_01') == name
