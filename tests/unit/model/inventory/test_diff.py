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


@pytest.fixture
def store() -> StoredHost:
    return StoredHost()


def test_diff_report_new_host_adds_everything(store: StoredHost) -> None:
    changes = store.report(host(2, 3))
    assert str(changes.devices) == '+2 ~0 -0'
    assert str(changes.deployables) == '+2 ~0 -0'
    assert str(changes.handles) == '+6 ~0 -0'
    assert changes.names[('serial-0', '')] == 'compute-1_0000:00:00.0'
    assert changes.concern_placement


def test_diff_report_changed_device_changes_only_it(store: StoredHost) -> None:
    first = host(64, 16)
    store.report(first)
    degraded = replace(first.devices[7], health=Health.DEGRADED, health_reason='hot')
    changes = store.report(
        replace(first, devices=(*first.devices[:7], degraded, *first.devices[8:]))
    )
    assert list(changes.devices.changed) == ['serial-7']
    assert not changes.deployables
    assert not changes.handles
    assert not changes.attributes


def test_diff_report_removes_unreported_free_device(store: StoredHost) -> None:
    store.report(host(2, 3))
    changes = store.report(host(1, 3))
    assert changes.devices.removed == {'serial-1'}
    assert changes.deployables.removed == {('serial-1', '')}
    assert len(changes.handles.removed) == 3
    assert store.layout.devices.keys() == {'serial-0'}


def test_diff_report_missing_claimed_handle_is_marked_missing(
    store: StoredHost,
) -> None:
    store.report(report(card(1, handles=4, serial='s')))
    missing_key, free_key = attach_handle(1, 1).key, attach_handle(1, 2).key
    store.claim(('s', '', missing_key))
    changes = store.report(
        report(without_handles(card(1, handles=4, serial='s'), missing_key, free_key))
    )
    assert store.layout.handles['s', '', missing_key].missing
    assert ('s', '', free_key) not in store.layout.handles
    assert not changes.devices
    assert store.layout.deployables['s', ''].total == 2


def test_diff_report_missing_device_in_use_is_reserved(store: StoredHost) -> None:
    store.report(host(2, 3))
    handle_path = ('serial-1', '', attach_handle(1, 0).key)
    store.claim(handle_path)
    store.report(host(1, 3))
    device = store.layout.devices['serial-1']
    assert device.health is Health.GONE
    assert device.health_reason
    child = store.layout.deployables['serial-1', '']
    assert child.reserved == child.total == 3
    handles = [path for path in store.layout.handles if path[0] == 'serial-1']
    assert handles == [handle_path]
    assert store.layout.handles[handle_path].missing
    # Attributes stay, so operators can identify the missing device.
    assert store.layout.attributes['serial-1', '', 'rc'] == 'VGPU'


def test_diff_report_reserves_claimed_handles_of_withheld_card(
    store: StoredHost,
) -> None:
    """The provider must outlive the instance that has an allocation of it."""
    store.report(report(card(1, handles=4, serial='s')))
    store.claim(('s', '', attach_handle(1, 1).key))
    withheld = without_handles(card(1, handles=4, serial='s'))
    store.report(report(with_root(withheld, resource_class=None, total=0, handles=())))
    child = store.layout.deployables['s', '']
    assert (child.resource_class, child.total, child.reserved) == ('VGPU', 4, 4)


def test_diff_report_refuses_class_change_while_in_use(store: StoredHost) -> None:
    """An undivided card and its vGPUs exclude each other."""
    undivided = card(1, serial='s')
    store.report(report(undivided))
    before = store.layout
    key = attach_handle(1, 0).key
    store.claim(('s', '', key))
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
        store.report(report(layout))
        assert store.layout.deployables == {
            ('s', ''): replace(before.deployables['s', ''], reserved=1)
        }
        assert store.layout.handles.keys() == {('s', '', key)}
        assert store.layout.attributes == before.attributes
        assert store.layout.devices['s'].health_reason == (
            'The change to VGPU is refused while 1 of PGPU are in use'
        )
        assert not store.report(report(layout))
    store.release()
    store.report(report(with_root(divided, handles=vgpus)))
    assert store.layout.deployables['s', ''].resource_class == 'VGPU'
    assert len(store.layout.handles) == 4
    assert store.layout.devices['s'].health_reason == ''


def test_diff_report_sibling_of_missing_handle_stays_offered(store: StoredHost) -> None:
    device = with_parts(card(1, serial='s'), 'a', 'b')
    children = [
        replace(p, resource_class=f'CUSTOM_{p.name[-1]}') for p in device.root.children
    ]
    store.report(report(with_root(device, children=tuple(children))))
    store.claim(('s', '_a', '0000:01:00.0/a'))
    store.report(report(with_root(device, children=(children[1],))))
    assert store.layout.deployables['s', '_b'].reserved == 0
    assert store.layout.devices['s'].health_reason == ''


def test_diff_report_returned_device_restores_layout(store: StoredHost) -> None:
    store.report(host(2, 3))
    before = store.layout
    store.claim(('serial-1', '', attach_handle(1, 0).key))
    store.report(host(1, 3))
    store.report(host(2, 3))
    assert store.layout == before
    assert store.inventory.claimed


def test_diff_leftovers_removes_missing_device_after_release(store: StoredHost) -> None:
    store.report(host(2, 3))
    store.claim(('serial-1', '', attach_handle(1, 0).key))
    store.report(host(1, 3))
    assert not store.remove_leftovers()
    store.release()
    store.remove_leftovers()
    assert store.layout.devices.keys() == {'serial-0'}
    assert {path[0] for path in store.layout.deployables} == {'serial-0'}
    assert {path[0] for path in store.layout.attributes} == {'serial-0'}


def test_diff_report_updates_claimed_handle(store: StoredHost) -> None:
    store.report(report(card(1, serial='s')))
    key = attach_handle(1, 0).key
    store.claim(('s', '', key))
    in_use = replace(attach_handle(1, 0), in_use=True)
    changes = store.report(report(with_root(card(1, serial='s'), handles=(in_use,))))
    assert changes.handles.changed.keys() == {('s', '', key)}
    assert store.layout.handles['s', '', key].in_use
    assert not store.layout.handles['s', '', key].missing


def test_diff_report_identifies_children_by_name_suffix(store: StoredHost) -> None:
    store.report(report(with_parts(card(1, serial='s'), 'region0', 'region1')))
    assert set(store.layout.deployables) == {
        ('s', ''),
        ('s', '_region0'),
        ('s', '_region1'),
    }
    assert store.layout.deployables['s', '_region0'].parent == ''
    changes = store.report(
        report(with_parts(card(1, serial='s'), 'region1', 'region2'))
    )
    assert changes.deployables.removed == {('s', '_region0')}
    assert changes.deployables.new.keys() == {('s', '_region2')}
    assert store.inventory.names['s', '_region2'] == 'compute-1_0000:01:00.0_region2'


def test_diff_report_moved_card_preserves_children(store: StoredHost) -> None:
    store.report(report(with_parts(card(1, serial='s'), 'region0')))
    names = dict(store.inventory.names)
    moved = report(with_parts(card(FREE_SLOT, serial='s'), 'region0', 'region1'))
    changes = store.report(moved)
    assert changes.deployables.new.keys() == {('s', '_region1')}
    # A new child has the name prefix of its root, also after the card moved.
    assert store.inventory.names == {
        **names,
        ('s', '_region1'): 'compute-1_0000:01:00.0_region1',
    }


def test_diff_report_missing_child_in_use_preserves_root(store: StoredHost) -> None:
    store.report(report(with_parts(card(1, serial='s'), 'region0', 'region1')))
    key = '0000:01:00.0/region0'
    store.claim(('s', '_region0', key))
    store.report(report(card(1, serial='s')))
    assert set(store.layout.deployables) == {('s', ''), ('s', '_region0')}
    assert store.layout.deployables['s', '_region0'].reserved == 1
    assert store.layout.deployables['s', ''].reserved == 0
    store.release()
    store.report(report(card(1, serial='s')))
    assert set(store.layout.deployables) == {('s', '')}


@pytest.mark.parametrize('name', ['compute-1_odd', 'compute-1_0000:01:00.0x'])
def test_diff_report_preserves_unusual_child_name(store: StoredHost, name: str) -> None:
    unusual = with_parts(card(1, serial='s'), 'x')
    child = replace(unusual.root.children[0], name=name)
    store.report(report(with_root(unusual, children=(child,))))
    assert store.inventory.names['s', name] == name


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
    store: StoredHost, device: Device, concerned: bool
) -> None:
    store.report(report(_CARD))
    changes = store.report(report(device))
    assert changes
    assert changes.concern_placement is concerned


def test_diff_report_truncates_long_reason_once(store: StoredHost) -> None:
    failed = replace(card(1), health=Health.FAILED, health_reason='x' * 1000)
    store.report(report(failed))
    assert not store.report(report(failed))
    [facts] = store.layout.devices.values()
    assert len(facts.health_reason) == 255


def test_report_digest_ignores_boot_id() -> None:
    report_of_boot = HostReport('h', 'boot-1', (card(1),))
    assert report_of_boot.digest == replace(report_of_boot, boot_id='boot-2').digest


def test_moved_card_preserves_handles_and_name(store: StoredHost) -> None:
    store.report(report(card(1, handles=12, serial='s')))
    name = store.inventory.names['s', '']
    store.claim(('s', '', attach_handle(1, 10).key))
    changes = store.report(report(card(FREE_SLOT, handles=12, serial='s')))
    assert str(changes.devices) == '+0 ~1 -0'
    assert not changes.deployables
    assert str(changes.handles) == '+0 ~12 -0'
    assert store.inventory.names['s', ''] == name
    assert store.layout.devices['s'].control_address == f'0000:{FREE_SLOT:02x}:00.0'
    # The claim follows handle 10 to the new address.
    assert store.inventory.claimed == {('s', '', attach_handle(FREE_SLOT, 10).key)}
    moved_handle = store.layout.handles['s', '', attach_handle(FREE_SLOT, 10).key]
    assert moved_handle.info['bus'] == '5e'


def test_moved_card_adds_additional_handles(store: StoredHost) -> None:
    store.report(report(card(1, handles=2, serial='s')))
    changes = store.report(report(card(FREE_SLOT, handles=3, serial='s')))
    assert str(changes.handles) == '+1 ~2 -0'
    assert len(store.layout.handles) == 3


def test_moved_card_matches_handles_in_numeric_order(store: StoredHost) -> None:
    """The order of the driver does not count."""
    device = card(1, serial='s')
    moved = card(FREE_SLOT, serial='s')
    store.report(report(with_root(device, handles=_shares(device, range(12)))))
    store.claim(('s', '', f'{device.control_address}/9'))
    backwards = _shares(moved, range(10, -1, -1))
    store.report(report(with_root(moved, handles=backwards)))
    assert store.inventory.claimed == {('s', '', f'{moved.control_address}/9')}


def test_moved_card_preserves_unchanged_handle_keys(store: StoredHost) -> None:
    device = card(1, serial='s')
    store.report(report(with_root(device, handles=_shares(device, (1, 2)))))
    elsewhere = replace(device, control_address='0000:5e:00.0')
    changes = store.report(
        report(with_root(elsewhere, handles=_shares(device, (0, 1, 2))))
    )
    assert changes.handles.new.keys() == {('s', '', f'{device.control_address}/0')}
    assert not changes.handles.changed


def _shares(device: Device, numbers: Iterable[int]) -> tuple[AttachHandle, ...]:
    keys = (f'{device.control_address}/{number}' for number in numbers)
    return tuple(AttachHandle(key, HandleType.MDEV, {}) for key in keys)


def test_moved_card_returned_handle_preserves_claim(store: StoredHost) -> None:
    """Two handles must never end with the same address."""
    store.report(report(card(1, handles=3, serial='s')))
    missing_key = attach_handle(1, 2).key
    store.claim(('s', '', missing_key))
    store.report(report(without_handles(card(1, handles=3, serial='s'), missing_key)))
    store.report(report(card(FREE_SLOT, handles=1, serial='s')))
    store.report(report(card(1, handles=3, serial='s')))
    assert store.inventory.claimed == {('s', '', missing_key)}
    assert not store.layout.handles['s', '', missing_key].missing
    assert len(store.layout.handles) == 3


def test_swapped_cards_preserve_names_and_claims(store: StoredHost) -> None:
    store.report(report(card(1, serial='a'), card(2, serial='b')))
    names = dict(store.inventory.names)
    store.claim(('a', '', attach_handle(1, 0).key))
    changes = store.report(report(card(2, serial='a'), card(1, serial='b')))
    assert str(changes.devices) == '+0 ~2 -0'
    assert store.inventory.names == names
    assert store.inventory.claimed == {('a', '', attach_handle(2, 0).key)}


def test_replacement_card_inherits_nothing(store: StoredHost) -> None:
    store.report(report(card(1, serial='a')))
    store.claim(('a', '', attach_handle(1, 0).key))
    changes = store.report(report(card(1, serial='b')))
    assert changes.devices.new.keys() == {'b'}
    assert store.layout.devices['a'].health is Health.GONE
    assert store.layout.handles['a', '', attach_handle(1, 0).key].missing
    assert not store.layout.handles['b', '', attach_handle(1, 0).key].missing
    # The old name stays with the provider that has the allocation.
    assert store.inventory.names['a', ''] == 'compute-1_0000:01:00.0'
    assert store.inventory.names['b', ''].startswith('compute-1_0000:01:00.0_')


def test_replacement_of_free_card_reuses_name(store: StoredHost) -> None:
    store.report(report(card(1, serial='a')))
    store.report(report(card(1, serial='b')))
    assert store.inventory.names == {('b', ''): 'compute-1_0000:01:00.0'}


def test_card_without_serial_other_product_is_new(store: StoredHost) -> None:
    store.report(report(card(1)))
    [first] = store.layout.devices
    replacement = replace(card(1), std_board_info={'product_id': '20f1'})
    changes = store.report(report(replacement))
    assert changes.devices.removed == {first}
    assert len(changes.devices.new) == 1


def test_card_with_changed_label_is_same(store: StoredHost) -> None:
    store.report(report(card(1)))
    changes = store.report(report(replace(card(1), model='NVIDIA Tesla T4')))
    assert str(changes.devices) == '+0 ~1 -0'


def test_card_without_serial_same_product_is_same(store: StoredHost) -> None:
    store.report(report(card(1)))
    assert not store.report(report(card(1)))


def test_card_with_newly_readable_serial_is_same(store: StoredHost) -> None:
    store.report(report(card(1)))
    changes = store.report(report(card(1, serial='s')))
    assert str(changes.devices) == '+0 ~1 -0'
    assert store.layout.devices.keys() == {'s'}
    assert not store.report(report(card(1, serial='s')))


def test_card_with_unreadable_serial_is_same(store: StoredHost) -> None:
    """Some kernel drivers expose the serial only while no guest has the card."""
    store.report(report(card(1, serial='s')))
    assert not store.report(report(card(1)))
    store.report(report(card(FREE_SLOT, serial='s')))
    assert store.layout.devices.keys() == {'s'}


def test_cards_with_duplicate_serial_use_slots(store: StoredHost) -> None:
    devices = report(card(1, serial='none'), card(2, serial='none'))
    assert str(store.report(devices).devices) == '+2 ~0 -0'
    assert not store.report(devices)


def test_function_in_use_elsewhere_is_closed(store: StoredHost) -> None:
    """An instance keeps a function whose deployable is reported under another name."""
    device = card(1, handles=2, serial='s')
    child = replace(device.root, name=f'{device.root.name}_part')
    root = replace(device.root, resource_class=None, handles=(), children=(child,))
    store.report(report(replace(device, root=root)))
    key = attach_handle(1, 0).key
    store.claim(('s', '_part', key))
    store.report(report(device))
    handles = store.layout.handles
    assert handles['s', '_part', key].missing
    assert handles['s', '', key].in_use
    assert not handles['s', '', attach_handle(1, 1).key].in_use


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
    store = StoredHost()
    for reported, random in steps:
        claimed = store.inventory.claimed
        before = {path: store.inventory.names[path[:2]] for path in claimed}
        changes = store.report(reported)
        _check_claimed(store, claimed, changes.handles.removed, before)
        _check_consistent(store)
        assert not store.report(reported), 'a repeated report must change nothing'
        _check_reported(store, reported)
        paths = sorted(store.layout.handles)
        chosen = random.sample(paths, random.randint(0, len(paths)))  # type: ignore[attr-defined]  # a Random
        store.claim(*chosen)


def _check_claimed(
    store: StoredHost,
    claimed: frozenset[tuple[str, str, str]],
    removed: frozenset[tuple[str, str, str]],
    names: dict[tuple[str, str, str], str],
) -> None:
    assert not claimed & removed
    assert len(store.inventory.claimed) == len(claimed)
    # The provider of an allocation exists under the same name.
    assert set(names.values()) <= set(store.inventory.names.values())


def _check_consistent(store: StoredHost) -> None:
    layout = store.layout
    for identity, suffix in layout.deployables:
        assert identity in layout.devices
        parent = layout.deployables[identity, suffix].parent
        assert parent is None or (identity, parent) in layout.deployables
    for path in [*layout.handles, *layout.attributes]:
        assert path[:2] in layout.deployables
    names = list(store.inventory.names.values())
    assert len(names) == len(set(names)), 'names are unique'
    assert set(store.inventory.names) == set(layout.deployables)


def _check_reported(store: StoredHost, reported: HostReport) -> None:
    """Check that reported objects exist once and other objects are claimed and missing.

    Devices whose class change is refused are exempt.
    """
    addresses = sorted(device.control_address for device in reported.devices)
    present = sorted(
        facts.control_address
        for facts in store.layout.devices.values()
        if facts.health != 'gone'
    )
    assert present == addresses
    refused = {
        facts.control_address
        for facts in store.layout.devices.values()
        if facts.health_reason.startswith('The change to')
    }
    keys = sorted(
        handle.key
        for device in reported.devices
        if device.control_address not in refused
        for deployable in device.root.walk()
        for handle in deployable.handles
    )
    available = [facts for facts in store.layout.handles.values() if not facts.missing]
    assert sorted(facts.key for facts in available) == keys
    for path, facts in store.layout.handles.items():
        assert not facts.missing or path in store.inventory.claimed
