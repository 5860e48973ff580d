# SPDX-License-Identifier: Apache-2.0
"""Tests of the changes between stored inventory and a host report."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Device,
    HandleType,
    Health,
    HostReport,
)
from tests.builders.reports import (
    attach_handle,
    card,
    host,
    report,
    with_parts,
    with_root,
    without_handles,
)
from tests.doubles.host_store import StoredHost

FREE_SLOT = 0x5E
_CARD = card(1, serial='s')
(_HANDLE,) = _CARD.root.handles


@pytest.fixture
def stored_host() -> StoredHost:
    return StoredHost()


# --- new, changed and missing objects ---


def test_diff_report_new_host_adds_everything(stored_host: StoredHost) -> None:
    changes = stored_host.report(host(2, 3))
    assert str(changes.devices) == '+2 ~0 -0'
    assert str(changes.deployables) == '+2 ~0 -0'
    assert str(changes.handles) == '+6 ~0 -0'
    assert changes.names[('serial-0', '')] == 'compute-1_0000:00:00.0'
    assert changes.concern_placement


def test_diff_report_changed_device_changes_only_it(stored_host: StoredHost) -> None:
    first = host(64, 16)
    stored_host.report(first)
    degraded = replace(first.devices[7], health=Health.DEGRADED, health_reason='hot')
    changes = stored_host.report(
        replace(first, devices=(*first.devices[:7], degraded, *first.devices[8:]))
    )
    assert list(changes.devices.changed) == ['serial-7']
    assert not changes.deployables
    assert not changes.handles
    assert not changes.attributes


def test_diff_report_removes_unreported_free_device(stored_host: StoredHost) -> None:
    stored_host.report(host(2, 3))
    changes = stored_host.report(host(1, 3))
    assert changes.devices.removed == {'serial-1'}
    assert changes.deployables.removed == {('serial-1', '')}
    assert len(changes.handles.removed) == 3
    assert stored_host.layout.devices.keys() == {'serial-0'}


# --- handles in use ---


def test_diff_report_missing_claimed_handle_is_marked_missing(
    stored_host: StoredHost,
) -> None:
    stored_host.report(report(card(1, handles=4, serial='s')))
    missing_key, free_key = attach_handle(1, 1).key, attach_handle(1, 2).key
    stored_host.claim(('s', '', missing_key))
    changes = stored_host.report(
        report(without_handles(card(1, handles=4, serial='s'), missing_key, free_key))
    )
    assert stored_host.layout.handles['s', '', missing_key].missing
    assert ('s', '', free_key) not in stored_host.layout.handles
    assert not changes.devices
    assert stored_host.layout.deployables['s', ''].total == 2


def test_diff_report_missing_device_in_use_is_reserved(stored_host: StoredHost) -> None:
    stored_host.report(host(2, 3))
    handle_path = ('serial-1', '', attach_handle(1, 0).key)
    stored_host.claim(handle_path)
    stored_host.report(host(1, 3))
    device = stored_host.layout.devices['serial-1']
    assert device.health is Health.GONE
    assert device.health_reason
    child = stored_host.layout.deployables['serial-1', '']
    assert child.reserved == child.total == 3
    handles = [path for path in stored_host.layout.handles if path[0] == 'serial-1']
    assert handles == [handle_path]
    assert stored_host.layout.handles[handle_path].missing
    # Attributes stay, so operators can identify the missing device.
    assert stored_host.layout.attributes['serial-1', '', 'rc'] == 'VGPU'


def test_diff_report_reserves_claimed_handles_of_withheld_card(
    stored_host: StoredHost,
) -> None:
    """The provider must outlive the instance that has an allocation of it."""
    stored_host.report(report(card(1, handles=4, serial='s')))
    stored_host.claim(('s', '', attach_handle(1, 1).key))
    withheld = without_handles(card(1, handles=4, serial='s'))
    stored_host.report(
        report(with_root(withheld, resource_class=None, total=0, handles=()))
    )
    child = stored_host.layout.deployables['s', '']
    assert (child.resource_class, child.total, child.reserved) == ('VGPU', 4, 4)


def test_diff_report_refuses_class_change_while_in_use(stored_host: StoredHost) -> None:
    """An undivided card and its vGPUs exclude each other."""
    undivided = card(1, serial='s')
    stored_host.report(report(undivided))
    before = stored_host.layout
    key = attach_handle(1, 0).key
    stored_host.claim(('s', '', key))
    divided = replace(
        card(1, handles=4, serial='s'), health_reason='', health=Health.OK
    )
    vgpus = tuple(
        replace(handle, key=f'{handle.key}/T4_2Q') for handle in divided.root.handles
    )
    mig = with_parts(
        with_root(undivided, resource_class=None, total=0, handles=()), '1_5C'
    )
    child = replace(mig.root.children[0], resource_class='VGPU')
    for layout in (
        with_root(divided, handles=vgpus),
        with_root(mig, children=(child,)),
    ):
        stored_host.report(report(layout))
        assert stored_host.layout.deployables == {
            ('s', ''): replace(before.deployables['s', ''], reserved=1)
        }
        assert stored_host.layout.handles.keys() == {('s', '', key)}
        assert stored_host.layout.attributes == before.attributes
        assert stored_host.layout.devices['s'].health_reason == (
            'The change to VGPU is refused while 1 of PGPU are in use'
        )
        assert not stored_host.report(report(layout))
    stored_host.release()
    stored_host.report(report(with_root(divided, handles=vgpus)))
    assert stored_host.layout.deployables['s', ''].resource_class == 'VGPU'
    assert len(stored_host.layout.handles) == 4
    assert stored_host.layout.devices['s'].health_reason == ''


def test_diff_report_sibling_of_missing_handle_stays_offered(
    stored_host: StoredHost,
) -> None:
    device = with_parts(card(1, serial='s'), 'a', 'b')
    children = [
        replace(p, resource_class=f'CUSTOM_{p.name[-1]}') for p in device.root.children
    ]
    stored_host.report(report(with_root(device, children=tuple(children))))
    stored_host.claim(('s', '_a', '0000:01:00.0/a'))
    stored_host.report(report(with_root(device, children=(children[1],))))
    assert stored_host.layout.deployables['s', '_b'].reserved == 0
    assert stored_host.layout.devices['s'].health_reason == ''


def test_diff_report_returned_device_restores_layout(stored_host: StoredHost) -> None:
    stored_host.report(host(2, 3))
    before = stored_host.layout
    stored_host.claim(('serial-1', '', attach_handle(1, 0).key))
    stored_host.report(host(1, 3))
    stored_host.report(host(2, 3))
    assert stored_host.layout == before
    assert stored_host.inventory.claimed


def test_diff_leftovers_removes_missing_device_after_release(
    stored_host: StoredHost,
) -> None:
    stored_host.report(host(2, 3))
    stored_host.claim(('serial-1', '', attach_handle(1, 0).key))
    stored_host.report(host(1, 3))
    assert not stored_host.remove_leftovers()
    stored_host.release()
    stored_host.remove_leftovers()
    assert stored_host.layout.devices.keys() == {'serial-0'}
    assert {path[0] for path in stored_host.layout.deployables} == {'serial-0'}
    assert {path[0] for path in stored_host.layout.attributes} == {'serial-0'}


def test_diff_report_updates_claimed_handle(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1, serial='s')))
    key = attach_handle(1, 0).key
    stored_host.claim(('s', '', key))
    in_use = replace(attach_handle(1, 0), in_use=True)
    changes = stored_host.report(
        report(with_root(card(1, serial='s'), handles=(in_use,)))
    )
    assert changes.handles.changed.keys() == {('s', '', key)}
    assert stored_host.layout.handles['s', '', key].in_use
    assert not stored_host.layout.handles['s', '', key].missing


# --- child deployables ---


def test_diff_report_identifies_children_by_name_suffix(
    stored_host: StoredHost,
) -> None:
    stored_host.report(report(with_parts(card(1, serial='s'), 'region0', 'region1')))
    assert set(stored_host.layout.deployables) == {
        ('s', ''),
        ('s', '_region0'),
        ('s', '_region1'),
    }
    assert stored_host.layout.deployables['s', '_region0'].parent == ''
    changes = stored_host.report(
        report(with_parts(card(1, serial='s'), 'region1', 'region2'))
    )
    assert changes.deployables.removed == {('s', '_region0')}
    assert changes.deployables.new.keys() == {('s', '_region2')}
    assert (
        stored_host.inventory.names['s', '_region2'] == 'compute-1_0000:01:00.0_region2'
    )


def test_diff_report_moved_card_preserves_children(stored_host: StoredHost) -> None:
    stored_host.report(report(with_parts(card(1, serial='s'), 'region0')))
    names = dict(stored_host.inventory.names)
    moved = report(with_parts(card(FREE_SLOT, serial='s'), 'region0', 'region1'))
    changes = stored_host.report(moved)
    assert changes.deployables.new.keys() == {('s', '_region1')}
    # A new child has the name prefix of its root, also after the card moved.
    assert stored_host.inventory.names == {
        **names,
        ('s', '_region1'): 'compute-1_0000:01:00.0_region1',
    }


def test_diff_report_missing_child_in_use_preserves_root(
    stored_host: StoredHost,
) -> None:
    stored_host.report(report(with_parts(card(1, serial='s'), 'region0', 'region1')))
    key = '0000:01:00.0/region0'
    stored_host.claim(('s', '_region0', key))
    stored_host.report(report(card(1, serial='s')))
    assert set(stored_host.layout.deployables) == {('s', ''), ('s', '_region0')}
    assert stored_host.layout.deployables['s', '_region0'].reserved == 1
    assert stored_host.layout.deployables['s', ''].reserved == 0
    stored_host.release()
    stored_host.report(report(card(1, serial='s')))
    assert set(stored_host.layout.deployables) == {('s', '')}


def test_diff_report_preserves_unusual_child_name(stored_host: StoredHost) -> None:
    unusual = with_parts(card(1, serial='s'), 'x')
    child = replace(unusual.root.children[0], name='compute-1_odd')
    stored_host.report(report(with_root(unusual, children=(child,))))
    assert stored_host.inventory.names['s', 'compute-1_odd'] == 'compute-1_odd'


# --- changes that concern Placement ---


@pytest.mark.parametrize(
    ('device', 'concerned'),
    [
        (with_root(_CARD, total=2), True),
        (with_root(_CARD, reserved=1), True),
        (with_root(_CARD, traits=('OWNER_CYBORG',)), True),
        (with_root(_CARD, resource_class='CUSTOM_X'), True),
        (with_root(_CARD, attributes={'numa': '1'}), False),
        (with_root(_CARD, handles=(replace(attach_handle(1, 0), in_use=True),)), True),
        (
            with_root(
                _CARD, handles=(replace(attach_handle(1, 0), info={'bus': '7'}),)
            ),
            False,
        ),
        (replace(_CARD, health=Health.FAILED), True),
        (replace(_CARD, std_board_info={}), False),
        (replace(_CARD, driver='other'), False),
    ],
)
def test_diff_report_concerns_placement_for_offer_and_health(
    stored_host: StoredHost, device: Device, concerned: bool
) -> None:
    stored_host.report(report(_CARD))
    changes = stored_host.report(report(device))
    assert changes
    assert changes.concern_placement is concerned


def test_diff_report_truncates_long_reason_once(stored_host: StoredHost) -> None:
    failed = replace(card(1), health=Health.FAILED, health_reason='x' * 1000)
    stored_host.report(report(failed))
    assert not stored_host.report(report(failed))
    [facts] = stored_host.layout.devices.values()
    assert len(facts.health_reason) == 255


def test_report_digest_ignores_boot_id() -> None:
    report_of_boot = HostReport('h', 'boot-1', (card(1),))
    assert report_of_boot.digest == replace(report_of_boot, boot_id='boot-2').digest


# --- cards that move, swap slots, or are replaced ---


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


def test_moved_card_adds_additional_handles(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1, handles=2, serial='s')))
    changes = stored_host.report(report(card(FREE_SLOT, handles=3, serial='s')))
    assert str(changes.handles) == '+1 ~2 -0'
    assert len(stored_host.layout.handles) == 3


def test_moved_card_matches_handles_in_numeric_order(stored_host: StoredHost) -> None:
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


def test_moved_card_returned_handle_preserves_claim(stored_host: StoredHost) -> None:
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


def test_card_without_serial_other_product_is_new(stored_host: StoredHost) -> None:
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


def test_card_without_serial_same_product_is_same(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1)))
    assert not stored_host.report(report(card(1)))


def test_card_with_newly_readable_serial_is_same(stored_host: StoredHost) -> None:
    stored_host.report(report(card(1)))
    changes = stored_host.report(report(card(1, serial='s')))
    assert str(changes.devices) == '+0 ~1 -0'
    assert stored_host.layout.devices.keys() == {'s'}
    assert not stored_host.report(report(card(1, serial='s')))


def test_card_with_unreadable_serial_is_same(stored_host: StoredHost) -> None:
    """Some kernel drivers expose the serial only while no guest has the card."""
    stored_host.report(report(card(1, serial='s')))
    assert not stored_host.report(report(card(1)))
    stored_host.report(report(card(FREE_SLOT, serial='s')))
    assert stored_host.layout.devices.keys() == {'s'}


def test_cards_with_duplicate_serial_use_slots(stored_host: StoredHost) -> None:
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


# --- any sequence of reports and claims ---


@st.composite
def _devices(draw: st.DrawFn) -> list[Device]:
    """Generate devices in up to four slots, with and without unique serial numbers."""
    serials = draw(st.permutations(['a', 'b', 'c', None, None]))
    slots = draw(st.lists(st.sampled_from([1, 2, 3, 4]), unique=True, max_size=4))
    devices = []
    for slot, serial in zip(slots, serials, strict=False):
        device = card(slot, handles=draw(st.integers(1, 3)), serial=serial)
        names = draw(st.lists(st.sampled_from('xyz'), unique=True, max_size=2))
        devices.append(with_parts(device, *names))
    return devices


_REPORTS = _devices().map(lambda devices: report(*devices))


@settings(deadline=None)
@given(st.lists(st.tuples(_REPORTS, st.randoms(use_true_random=False)), max_size=6))
def test_reports_in_any_order_preserve_invariants(
    steps: list[tuple[HostReport, object]],
) -> None:
    stored_host = StoredHost()
    for reported, random in steps:
        claimed = stored_host.inventory.claimed
        before = {path: stored_host.inventory.names[path[:2]] for path in claimed}
        changes = stored_host.report(reported)
        _check_claimed(stored_host, claimed, changes.handles.removed, before)
        _check_consistent(stored_host)
        assert not stored_host.report(reported), 'a repeated report must change nothing'
        _check_reported(stored_host, reported)
        paths = sorted(stored_host.layout.handles)
        chosen = random.sample(paths, random.randint(0, len(paths)))  # type: ignore[attr-defined]  # a Random
        stored_host.claim(*chosen)


def _check_claimed(
    stored_host: StoredHost,
    claimed: frozenset[tuple[str, str, str]],
    removed: frozenset[tuple[str, str, str]],
    names: dict[tuple[str, str, str], str],
) -> None:
    assert not claimed & removed
    assert len(stored_host.inventory.claimed) == len(claimed)
    # The provider of an allocation exists under the same name.
    assert set(names.values()) <= set(stored_host.inventory.names.values())


def _check_consistent(stored_host: StoredHost) -> None:
    layout = stored_host.layout
    for identity, suffix in layout.deployables:
        assert identity in layout.devices
        parent = layout.deployables[identity, suffix].parent
        assert parent is None or (identity, parent) in layout.deployables
    for path in [*layout.handles, *layout.attributes]:
        assert path[:2] in layout.deployables
    names = list(stored_host.inventory.names.values())
    assert len(names) == len(set(names)), 'names are unique'
    assert set(stored_host.inventory.names) == set(layout.deployables)


def _check_reported(stored_host: StoredHost, reported: HostReport) -> None:
    """Check that reported objects exist once and other objects are claimed and missing.

    Devices whose class change is refused are exempt.
    """
    addresses = sorted(device.control_address for device in reported.devices)
    present = sorted(
        facts.control_address
        for facts in stored_host.layout.devices.values()
        if facts.health != 'gone'
    )
    assert present == addresses
    refused = {
        facts.control_address
        for facts in stored_host.layout.devices.values()
        if facts.health_reason.startswith('The change to')
    }
    keys = sorted(
        handle.key
        for device in reported.devices
        if device.control_address not in refused
        for deployable in device.root.walk()
        for handle in deployable.handles
    )
    available = [
        facts for facts in stored_host.layout.handles.values() if not facts.missing
    ]
    assert sorted(facts.key for facts in available) == keys
    for path, facts in stored_host.layout.handles.items():
        assert not facts.missing or path in stored_host.inventory.claimed
