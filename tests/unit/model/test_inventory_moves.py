# SPDX-License-Identifier: Apache-2.0
"""Tests of cards that move, swap slots, or are replaced."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Device,
    HandleType,
    Health,
)
from tests.builders.reports import (
    attach_handle,
    card,
    report,
    with_root,
    without_handles,
)
from tests.doubles.host_store import StoredHost

FREE_SLOT = 0x5E


@pytest.fixture
def stored_host() -> StoredHost:
    return StoredHost()


def test_moved_card_preserves_handles_and_name(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1, handles=12, serial='s')))
    name = stored_host.inventory.names['s', '']
    stored_host.claim(('s', '', attach_handle(1, 10).key))
    changes = stored_host.report(report(card(FREE_SLOT, handles=12, serial='s')))
    assert str(changes.devices) == '+0 ~1 -0'
    assert not changes.deployables
    assert str(changes.handles) == '+0 ~12 -0'
    assert stored_host.inventory.names['s', ''] == name
    assert (
        stored_host.layout.devices['s'].control_address == f'0000:{FREE_SLOT:02x}:00.0'
    )
    # The claim follows handle 10 to the new address.
    assert stored_host.inventory.claimed == {
        ('s', '', attach_handle(FREE_SLOT, 10).key)
    }
    moved_handle = stored_host.layout.handles['s', '', attach_handle(FREE_SLOT, 10).key]
    assert moved_handle.info['bus'] == '5e'


def test_moved_card_adds_additional_handles(
    stored_host: StoredHost,
) -> None:
    stored_host.report(report(card(1, handles=2, serial='s')))
    changes = stored_host.report(report(card(FREE_SLOT, handles=3, serial='s')))
    assert str(changes.handles) == '+1 ~2 -0'
    assert len(stored_host.layout.handles) == 3


def test_moved_card_matches_handles_in_numeric_order(
    stored_host: StoredHost,
) -> None:
    """The order of the driver does not count."""
    device = card(1, serial='s')
    moved = card(FREE_SLOT, serial='s')
    stored_host.report(report(with_root(device, handles=_shares(device, range(12)))))
    stored_host.claim(('s', '', f'{device.control_address}/9'))
    backwards = _shares(moved, range(10, -1, -1))
    stored_host.report(report(with_root(moved, handles=backwards)))
    assert stored_host.inventory.claimed == {('s', '', f'{moved.control_address}/9')}


def test_moved_card_preserves_unchanged_handle_keys(stored_host: StoredHost) -> None:
    device = card(1, serial='s')
    stored_host.report(report(with_root(device, handles=_shares(device, (1, 2)))))
    elsewhere = replace(device, control_address='0000:5e:00.0')
    changes = stored_host.report(
        report(with_root(elsewhere, handles=_shares(device, (0, 1, 2))))
    )
    assert changes.handles.new.keys() == {('s', '', f'{device.control_address}/0')}
    assert not changes.handles.changed


def _shares(device: Device, numbers: Iterable[int]) -> tuple[AttachHandle, ...]:
    keys = (f'{device.control_address}/{number}' for number in numbers)
    return tuple(AttachHandle(key, HandleType.MDEV, {}) for key in keys)


def test_moved_card_returned_handle_preserves_claim(
    stored_host: StoredHost,
) -> None:
    """Two handles must never end with the same address."""
    stored_host.report(report(card(1, handles=3, serial='s')))
    missing_key = attach_handle(1, 2).key
    stored_host.claim(('s', '', missing_key))
    stored_host.report(
        report(without_handles(card(1, handles=3, serial='s'), missing_key))
    )
    stored_host.report(report(card(FREE_SLOT, handles=1, serial='s')))
    stored_host.report(report(card(1, handles=3, serial='s')))
    assert stored_host.inventory.claimed == {('s', '', missing_key)}
    assert not stored_host.layout.handles['s', '', missing_key].missing
    assert len(stored_host.layout.handles) == 3


def test_swapped_cards_preserve_names_and_claims(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1, serial='a'), card(2, serial='b')))
    names = dict(stored_host.inventory.names)
    stored_host.claim(('a', '', attach_handle(1, 0).key))
    changes = stored_host.report(report(card(2, serial='a'), card(1, serial='b')))
    assert str(changes.devices) == '+0 ~2 -0'
    assert stored_host.inventory.names == names
    assert stored_host.inventory.claimed == {('a', '', attach_handle(2, 0).key)}


def test_replacement_card_inherits_nothing(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1, serial='a')))
    stored_host.claim(('a', '', attach_handle(1, 0).key))
    changes = stored_host.report(report(card(1, serial='b')))
    assert changes.devices.new.keys() == {'b'}
    assert stored_host.layout.devices['a'].health is Health.GONE
    assert stored_host.layout.handles['a', '', attach_handle(1, 0).key].missing
    assert not stored_host.layout.handles['b', '', attach_handle(1, 0).key].missing
    # The old name stays with the provider that has the allocation.
    assert stored_host.inventory.names['a', ''] == 'compute-1_0000:01:00.0'
    assert stored_host.inventory.names['b', ''].startswith('compute-1_0000:01:00.0_')


def test_replacement_of_free_card_reuses_name(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1, serial='a')))
    stored_host.report(report(card(1, serial='b')))
    assert stored_host.inventory.names == {('b', ''): 'compute-1_0000:01:00.0'}


def test_card_without_serial_other_product_is_new(
    stored_host: StoredHost,
) -> None:
    stored_host.report(report(card(1)))
    [first] = stored_host.layout.devices
    replacement = replace(card(1), std_board_info={'product_id': '20f1'})
    changes = stored_host.report(report(replacement))
    assert changes.devices.removed == {first}
    assert len(changes.devices.new) == 1


def test_card_with_changed_label_is_same(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1)))
    changes = stored_host.report(report(replace(card(1), model='NVIDIA Tesla T4')))
    assert str(changes.devices) == '+0 ~1 -0'


def test_card_without_serial_same_product_is_same(
    stored_host: StoredHost,
) -> None:
    stored_host.report(report(card(1)))
    assert not stored_host.report(report(card(1)))


def test_card_with_newly_readable_serial_is_same(
    stored_host: StoredHost,
) -> None:
    stored_host.report(report(card(1)))
    changes = stored_host.report(report(card(1, serial='s')))
    assert str(changes.devices) == '+0 ~1 -0'
    assert stored_host.layout.devices.keys() == {'s'}
    assert not stored_host.report(report(card(1, serial='s')))


def test_card_with_unreadable_serial_is_same(
    stored_host: StoredHost,
) -> None:
    """Some kernel drivers expose the serial only while no guest has the card."""
    stored_host.report(report(card(1, serial='s')))
    assert not stored_host.report(report(card(1)))
    stored_host.report(report(card(FREE_SLOT, serial='s')))
    assert stored_host.layout.devices.keys() == {'s'}


def test_cards_with_duplicate_serial_use_slots(
    stored_host: StoredHost,
) -> None:
    devices = report(card(1, serial='none'), card(2, serial='none'))
    assert str(stored_host.report(devices).devices) == '+2 ~0 -0'
    assert not stored_host.report(devices)


def test_function_in_use_elsewhere_is_closed(stored_host: StoredHost) -> None:
    """An instance keeps a function whose deployable is reported under another name."""
    device = card(1, handles=2, serial='s')
    child = replace(device.root, name=f'{device.root.name}_part')
    root = replace(device.root, resource_class=None, handles=(), children=(child,))
    stored_host.report(report(replace(device, root=root)))
    key = attach_handle(1, 0).key
    stored_host.claim(('s', '_part', key))
    stored_host.report(report(device))
    handles = stored_host.layout.handles
    assert handles['s', '_part', key].missing
    assert handles['s', '', key].in_use
    assert not handles['s', '', attach_handle(1, 1).key].in_use
