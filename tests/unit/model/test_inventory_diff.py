# SPDX-License-Identifier: Apache-2.0
"""From what is known of a host to what is reported: little, and never a lost server."""

from dataclasses import replace

import pytest

from cyborg_lite.model.inventory import Device, Health, HostReport
from tests.fakes.cards import (
    card,
    host,
    report,
    unit,
    with_parts,
    with_root,
    without_units,
)
from tests.fakes.known_hosts import KnownHost

FREE_SLOT = 0x5E


@pytest.fixture
def known() -> KnownHost:
    return KnownHost()


# --- what is there and what is not ---


def test_all_of_a_new_host_is_new(known: KnownHost) -> None:
    found = known.report(host(2, 3))
    assert str(found.devices) == '+2 ~0 -0'
    assert str(found.parts) == '+2 ~0 -0'
    assert str(found.units) == '+6 ~0 -0'
    assert found.names[('serial-0', '')] == 'compute-1_0000:00:00.0'
    assert found.concern_placement


def test_the_same_report_changes_nothing(known: KnownHost) -> None:
    known.report(host(2, 3))
    found = known.report(host(2, 3))
    assert not found
    assert not found.concern_placement


def test_the_order_of_a_report_does_not_matter(known: KnownHost) -> None:
    known.report(host(2, 3))
    backwards = [
        with_root(device, units=device.root.units[::-1])
        for device in reversed(host(2, 3).devices)
    ]
    assert not known.report(report(*backwards))


def test_one_changed_device_changes_that_one_only(known: KnownHost) -> None:
    first = host(64, 16)
    known.report(first)
    warm = replace(first.devices[7], health=Health.DEGRADED, health_reason='hot')
    found = known.report(
        replace(first, devices=(*first.devices[:7], warm, *first.devices[8:]))
    )
    assert list(found.devices.changed) == ['serial-7']
    assert not found.parts
    assert not found.units
    assert not found.attributes


def test_what_is_free_and_not_reported_goes(known: KnownHost) -> None:
    known.report(host(2, 3))
    found = known.report(host(1, 3))
    assert found.devices.gone == {'serial-1'}
    assert found.parts.gone == {('serial-1', '')}
    assert len(found.units.gone) == 3
    assert known.layout.devices.keys() == {'serial-0'}


def test_a_host_may_lose_everything(known: KnownHost) -> None:
    known.report(host(2, 3))
    known.report(report())
    assert known.layout.devices == {}
    assert known.layout.attributes == {}


# --- what a request holds ---


def test_a_held_unit_that_vanishes_is_kept_and_marked(known: KnownHost) -> None:
    known.report(report(card(1, units=4, serial='s')))
    gone, also_gone = unit(1, 1).key, unit(1, 2).key
    known.hold(('s', '', gone))
    found = known.report(
        report(without_units(card(1, units=4, serial='s'), gone, also_gone))
    )
    assert known.layout.units['s', '', gone].missing
    assert ('s', '', also_gone) not in known.layout.units
    assert not found.devices
    assert known.layout.parts['s', ''].total == 2


def test_a_device_with_a_held_unit_is_kept_closed_and_says_why(
    known: KnownHost,
) -> None:
    known.report(host(2, 3))
    held = ('serial-1', '', unit(1, 0).key)
    known.hold(held)
    known.report(host(1, 3))
    device = known.layout.devices['serial-1']
    assert device.health is Health.GONE
    assert device.health_reason
    part = known.layout.parts['serial-1', '']
    assert part.reserved == part.total == 3
    of_it = [path for path in known.layout.units if path[0] == 'serial-1']
    assert of_it == [held]
    assert known.layout.units[held].missing
    # Its attributes are kept too: somebody will want to know what it was.
    assert known.layout.attributes['serial-1', '', 'rc'] == 'VGPU'


def test_a_card_that_offers_nothing_now_still_owes_what_is_held(
    known: KnownHost,
) -> None:
    """Its provider must outlive the server that has an allocation of it."""
    known.report(report(card(1, units=4, serial='s')))
    known.hold(('s', '', unit(1, 1).key))
    withheld = without_units(card(1, units=4, serial='s'))
    known.report(report(with_root(withheld, resource_class=None, total=0, units=())))
    part = known.layout.parts['s', '']
    assert (part.resource_class, part.total, part.reserved) == ('VGPU', 4, 4)


def test_a_card_does_not_become_another_thing_under_its_server(
    known: KnownHost,
) -> None:
    """Whole and cut up exclude each other, whatever the operator configures."""
    whole = card(1, serial='s')
    known.report(report(whole))
    before = known.layout
    key = unit(1, 0).key
    known.hold(('s', '', key))
    cut = replace(card(1, units=4, serial='s'), health_reason='', health=Health.OK)
    vgpus = tuple(replace(each, key=f'{each.key}/T4_2Q') for each in cut.root.units)
    mig = with_parts(with_root(whole, resource_class=None, total=0, units=()), '1_5C')
    part = replace(mig.root.parts[0], resource_class='VGPU')
    for wanted in (with_root(cut, units=vgpus), with_root(mig, parts=(part,))):
        known.report(report(wanted))
        assert known.layout.parts == {
            ('s', ''): replace(before.parts['s', ''], reserved=1)
        }
        assert known.layout.units.keys() == {('s', '', key)}
        assert known.layout.attributes == before.attributes
        assert known.layout.devices['s'].health_reason == (
            'The change to VGPU is refused while 1 of PGPU are in use'
        )
        assert not known.report(report(wanted))
    known.release()
    known.report(report(with_root(cut, units=vgpus)))
    assert known.layout.parts['s', ''].resource_class == 'VGPU'
    assert len(known.layout.units) == 4
    assert known.layout.devices['s'].health_reason == ''


def test_what_a_card_offered_beside_a_held_unit_that_vanishes_stays(
    known: KnownHost,
) -> None:
    both = with_parts(card(1, serial='s'), 'a', 'b')
    parts = [replace(p, resource_class=f'CUSTOM_{p.name[-1]}') for p in both.root.parts]
    known.report(report(with_root(both, parts=tuple(parts))))
    known.hold(('s', '_a', '0000:01:00.0/a'))
    known.report(report(with_root(both, parts=(parts[1],))))
    assert known.layout.parts['s', '_b'].reserved == 0
    assert known.layout.devices['s'].health_reason == ''


def test_what_was_kept_stays_the_same_until_something_happens(known: KnownHost) -> None:
    known.report(host(2, 3))
    known.hold(('serial-1', '', unit(1, 0).key))
    known.report(host(1, 3))
    assert not known.report(host(1, 3))


def test_a_device_that_comes_back_is_as_before(known: KnownHost) -> None:
    known.report(host(2, 3))
    before = known.layout
    known.hold(('serial-1', '', unit(1, 0).key))
    known.report(host(1, 3))
    known.report(host(2, 3))
    assert known.layout == before
    assert known.known.held


def test_what_is_left_of_a_vanished_device_goes_with_its_last_holder(
    known: KnownHost,
) -> None:
    known.report(host(2, 3))
    known.hold(('serial-1', '', unit(1, 0).key))
    known.report(host(1, 3))
    assert not known.forget_leftovers()
    known.release()
    known.forget_leftovers()
    assert known.layout.devices.keys() == {'serial-0'}
    assert {path[0] for path in known.layout.parts} == {'serial-0'}
    assert {path[0] for path in known.layout.attributes} == {'serial-0'}


def test_leftovers_of_a_device_that_is_there_are_none(known: KnownHost) -> None:
    known.report(host(2, 3))
    assert not known.forget_leftovers()


def test_a_held_unit_follows_what_its_driver_says(known: KnownHost) -> None:
    known.report(report(card(1, serial='s')))
    key = unit(1, 0).key
    known.hold(('s', '', key))
    in_use = replace(unit(1, 0), in_use=True)
    found = known.report(report(with_root(card(1, serial='s'), units=(in_use,))))
    assert found.units.changed.keys() == {('s', '', key)}
    assert known.layout.units['s', '', key].in_use
    assert not known.layout.units['s', '', key].missing


# --- parts ---


def test_parts_are_told_by_what_their_names_add_to_the_root(known: KnownHost) -> None:
    known.report(report(with_parts(card(1, serial='s'), 'region0', 'region1')))
    assert set(known.layout.parts) == {('s', ''), ('s', '_region0'), ('s', '_region1')}
    assert known.layout.parts['s', '_region0'].parent == ''
    found = known.report(report(with_parts(card(1, serial='s'), 'region1', 'region2')))
    assert found.parts.gone == {('s', '_region0')}
    assert found.parts.new.keys() == {('s', '_region2')}
    assert known.known.names['s', '_region2'] == 'compute-1_0000:01:00.0_region2'


def test_parts_of_a_card_that_moved_stay_parts_of_it(known: KnownHost) -> None:
    known.report(report(with_parts(card(1, serial='s'), 'region0')))
    names = dict(known.known.names)
    moved = report(with_parts(card(FREE_SLOT, serial='s'), 'region0', 'region1'))
    found = known.report(moved)
    assert found.parts.new.keys() == {('s', '_region1')}
    # A new part is named after the root as it is called, wherever that is now.
    assert known.known.names == {
        **names,
        ('s', '_region1'): 'compute-1_0000:01:00.0_region1',
    }


def test_a_vanished_part_with_a_holder_keeps_what_it_is_part_of(
    known: KnownHost,
) -> None:
    known.report(report(with_parts(card(1, serial='s'), 'region0', 'region1')))
    key = '0000:01:00.0/region0'
    known.hold(('s', '_region0', key))
    known.report(report(card(1, serial='s')))
    assert set(known.layout.parts) == {('s', ''), ('s', '_region0')}
    assert known.layout.parts['s', '_region0'].reserved == 1
    assert known.layout.parts['s', ''].reserved == 0
    known.release()
    known.report(report(card(1, serial='s')))
    assert set(known.layout.parts) == {('s', '')}


def test_a_part_named_after_nothing_keeps_its_name(known: KnownHost) -> None:
    odd = with_parts(card(1, serial='s'), 'x')
    part = replace(odd.root.parts[0], name='compute-1_odd')
    known.report(report(with_root(odd, parts=(part,))))
    assert known.known.names['s', 'compute-1_odd'] == 'compute-1_odd'


# --- what concerns Placement ---


@pytest.mark.parametrize(
    ('changed', 'concerned'),
    [
        ({'total': 2}, True),
        ({'reserved': 1}, True),
        ({'traits': ('OWNER_CYBORG',)}, True),
        ({'resource_class': 'CUSTOM_X'}, True),
        ({'attributes': {'numa': '1'}}, False),
        ({'units': (replace(unit(1, 0), in_use=True),)}, True),
        ({'units': (replace(unit(1, 0), info={'bus': '7'}),)}, False),
    ],
)
def test_placement_follows_what_it_shows(
    known: KnownHost, changed: dict[str, object], concerned: bool
) -> None:
    known.report(report(card(1, serial='s')))
    found = known.report(report(with_root(card(1, serial='s'), **changed)))
    assert found
    assert found.concern_placement is concerned


@pytest.mark.parametrize(
    ('device', 'concerned'),
    [
        (replace(card(1, serial='s'), health=Health.FAILED), True),
        (replace(card(1, serial='s'), std_board_info={}), False),
        (replace(card(1, serial='s'), driver='other'), False),
    ],
)
def test_placement_follows_the_health_of_a_device(
    known: KnownHost, device: Device, concerned: bool
) -> None:
    known.report(report(card(1, serial='s')))
    found = known.report(report(device))
    assert found
    assert found.concern_placement is concerned


def test_a_long_reason_is_cut_and_does_not_change_every_time(known: KnownHost) -> None:
    ill = replace(card(1), health=Health.FAILED, health_reason='x' * 1000)
    known.report(report(ill))
    assert not known.report(report(ill))
    [facts] = known.layout.devices.values()
    assert len(facts.health_reason) == 255


def test_a_report_of_another_boot_is_the_same_inventory() -> None:
    one = HostReport('h', 'boot-1', (card(1),))
    assert one.digest == replace(one, boot_id='boot-2').digest
