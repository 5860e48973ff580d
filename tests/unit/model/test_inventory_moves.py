# SPDX-License-Identifier: Apache-2.0
"""Cards that move, swap, or are replaced: who keeps what."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from cyborg_lite.model.inventory import Device, HandleType, Health, Unit
from tests.fakes.cards import card, report, unit, with_root, without_units
from tests.fakes.known_hosts import KnownHost

FREE_SLOT = 0x5E


@pytest.fixture
def known() -> KnownHost:
    return KnownHost()


def test_a_card_that_moved_keeps_its_parts_units_and_name(known: KnownHost) -> None:
    known.report(report(card(1, units=12, serial='s')))
    name = known.known.names['s', '']
    known.hold(('s', '', unit(1, 10).key))
    found = known.report(report(card(FREE_SLOT, units=12, serial='s')))
    assert str(found.devices) == '+0 ~1 -0'
    assert not found.parts
    assert str(found.units) == '+0 ~12 -0'
    assert known.known.names['s', ''] == name
    assert known.layout.devices['s'].address == f'0000:{FREE_SLOT:02x}:00.0'
    # Its tenth unit is its tenth unit still, at the new address.
    assert known.known.held == {('s', '', unit(FREE_SLOT, 10).key)}
    assert known.layout.units['s', '', unit(FREE_SLOT, 10).key].info['bus'] == '5e'


def test_units_beyond_those_known_are_new_on_a_card_that_moved(
    known: KnownHost,
) -> None:
    known.report(report(card(1, units=2, serial='s')))
    found = known.report(report(card(FREE_SLOT, units=3, serial='s')))
    assert str(found.units) == '+1 ~2 -0'
    assert len(known.layout.units) == 3


def test_units_of_a_card_that_moved_are_matched_in_their_order(
    known: KnownHost,
) -> None:
    """By number, not as text, and however the driver lists them."""
    device = card(1, serial='s')
    moved = card(FREE_SLOT, serial='s')
    known.report(report(with_root(device, units=_shares(device, range(12)))))
    known.hold(('s', '', f'{device.address}/9'))
    backwards = _shares(moved, range(10, -1, -1))
    known.report(report(with_root(moved, units=backwards)))
    assert known.known.held == {('s', '', f'{moved.address}/9')}


def test_units_that_kept_their_keys_are_not_shifted(known: KnownHost) -> None:
    device = card(1, serial='s')
    known.report(report(with_root(device, units=_shares(device, (1, 2)))))
    elsewhere = replace(device, address='0000:5e:00.0')
    found = known.report(report(with_root(elsewhere, units=_shares(device, (0, 1, 2)))))
    assert found.units.new.keys() == {('s', '', f'{device.address}/0')}
    assert not found.units.changed


def _shares(device: Device, numbers: Iterable[int]) -> tuple[Unit, ...]:
    keys = (f'{device.address}/{number}' for number in numbers)
    return tuple(Unit(key, HandleType.MDEV, {}) for key in keys)


def test_a_unit_that_comes_back_on_a_card_that_moved_is_that_unit(
    known: KnownHost,
) -> None:
    """However the card moved meanwhile: no two units may end with one address."""
    known.report(report(card(1, units=3, serial='s')))
    lost = unit(1, 2).key
    known.hold(('s', '', lost))
    known.report(report(without_units(card(1, units=3, serial='s'), lost)))
    known.report(report(card(FREE_SLOT, units=1, serial='s')))
    known.report(report(card(1, units=3, serial='s')))
    assert known.known.held == {('s', '', lost)}
    assert not known.layout.units['s', '', lost].missing
    assert len(known.layout.units) == 3


def test_two_cards_that_swap_their_slots_keep_what_they_have(known: KnownHost) -> None:
    known.report(report(card(1, serial='a'), card(2, serial='b')))
    names = dict(known.known.names)
    known.hold(('a', '', unit(1, 0).key))
    found = known.report(report(card(2, serial='a'), card(1, serial='b')))
    assert str(found.devices) == '+0 ~2 -0'
    assert known.known.names == names
    assert known.known.held == {('a', '', unit(2, 0).key)}


def test_another_card_in_the_slot_inherits_nothing(known: KnownHost) -> None:
    known.report(report(card(1, serial='a')))
    known.hold(('a', '', unit(1, 0).key))
    found = known.report(report(card(1, serial='b')))
    assert found.devices.new.keys() == {'b'}
    assert known.layout.devices['a'].health is Health.GONE
    assert known.layout.units['a', '', unit(1, 0).key].missing
    assert not known.layout.units['b', '', unit(1, 0).key].missing
    # The name is the name of a provider, and the server still has an allocation there.
    assert known.known.names['a', ''] == 'compute-1_0000:01:00.0'
    assert known.known.names['b', ''].startswith('compute-1_0000:01:00.0_')


def test_another_card_has_the_name_of_a_free_one_that_left(known: KnownHost) -> None:
    known.report(report(card(1, serial='a')))
    known.report(report(card(1, serial='b')))
    assert known.known.names == {('b', ''): 'compute-1_0000:01:00.0'}


def test_without_a_serial_number_another_product_is_another_card(
    known: KnownHost,
) -> None:
    known.report(report(card(1)))
    [first] = known.layout.devices
    other = replace(card(1), std_board_info={'product_id': '20f1'})
    found = known.report(report(other))
    assert found.devices.gone == {first}
    assert len(found.devices.new) == 1


def test_a_reworded_label_makes_no_other_card(known: KnownHost) -> None:
    known.report(report(card(1)))
    found = known.report(report(replace(card(1), model='NVIDIA Tesla T4')))
    assert str(found.devices) == '+0 ~1 -0'


def test_without_a_serial_number_the_same_product_is_the_same_card(
    known: KnownHost,
) -> None:
    known.report(report(card(1)))
    assert not known.report(report(card(1)))


def test_a_serial_number_that_can_be_read_at_last_makes_no_other_card(
    known: KnownHost,
) -> None:
    known.report(report(card(1)))
    found = known.report(report(card(1, serial='s')))
    assert str(found.devices) == '+0 ~1 -0'
    assert known.layout.devices.keys() == {'s'}
    assert not known.report(report(card(1, serial='s')))


def test_a_serial_number_that_cannot_be_read_now_is_remembered(
    known: KnownHost,
) -> None:
    """The driver that tells it is not bound while a guest has the card."""
    known.report(report(card(1, serial='s')))
    assert not known.report(report(card(1)))
    known.report(report(card(FREE_SLOT, serial='s')))
    assert known.layout.devices.keys() == {'s'}


def test_cards_with_one_serial_number_are_told_apart_by_their_slots(
    known: KnownHost,
) -> None:
    both = report(card(1, serial='none'), card(2, serial='none'))
    assert str(known.report(both).devices) == '+2 ~0 -0'
    assert not known.report(both)
