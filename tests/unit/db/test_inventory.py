# SPDX-License-Identifier: Apache-2.0
"""Reports as rows: few statements, stable uuids, and nothing of a server's lost."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db import inventory, inventory_rows, services
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import AttachHandle, Attribute, Deployable, Device
from cyborg_lite.exceptions import HandlesContended, InvalidInput
from tests.fakes.cards import HOST, card, host, report, unit, with_parts, without_units
from tests.fakes.rows import add_arqs
from tests.fakes.statements import statements
from tests.fakes.stored_hosts import hold, release, store, table_of, uuids_of_all

# --- rows ---


def test_a_report_becomes_rows(database: Database) -> None:
    store(database, report(card(0x3B, units=2, serial='s')))
    assert table_of(database, Device, 'hardware_id', 'hostname', 'model', 'status') == {
        's': (HOST, 'Tesla T4', 'enabled')
    }
    [found] = table_of(
        database, Deployable, 'name', 'resource_class', 'num_accelerators', 'rp_uuid'
    ).items()
    # uuid3 of the name in the DNS namespace, which Placement may know from Cyborg.
    assert found == (
        'compute-1_0000:3b:00.0',
        ('VGPU', 2, '4dc17aab-79d3-3f4f-b61f-3cc3f3cb0ef8'),
    )
    handles = table_of(database, AttachHandle, 'key', 'type', 'info', 'arq_uuid')
    info = {'domain': '0000', 'bus': '3b', 'device': '00', 'function': '1'}
    assert handles['0000:3b:00.1'] == ('PCI', info, None)
    assert table_of(database, Attribute, 'key', 'value') == {
        'rc': ('VGPU',),
        'traits1': ('OWNER_CYBORG',),
        'traits2': ('CUSTOM_NVIDIA_1EB8',),
        'numa': ('0',),
    }


def test_parts_know_their_parent_and_their_root(database: Database) -> None:
    device = with_parts(card(1), 'a', 'b')
    below = replace(device.root.parts[0], name=f'{device.root.name}_a_1', units=())
    part = replace(device.root.parts[0], parts=(below,), resource_class=None)
    tree = replace(device.root, parts=(part, device.root.parts[1]))
    store(database, report(replace(device, root=tree)))
    ids = table_of(
        database, Deployable, 'name', 'id', 'parent_id', 'root_id', 'rp_uuid'
    )
    by_part = {name.removeprefix(device.root.name): row for name, row in ids.items()}
    root = by_part[''][0]
    assert by_part[''][1:3] == (None, None)
    assert by_part['_a'][1:3] == (root, root)
    assert by_part['_b'][1:3] == (root, root)
    assert by_part['_a_1'][1:3] == (by_part['_a'][0], root)
    # What only holds parts has no provider.
    assert by_part['_a'][3] is None
    assert by_part['_a_1'][3] is not None


def test_parts_that_go_take_those_below_them_along(database: Database) -> None:
    store(database, report(with_parts(card(1), 'a', 'b')), report(card(1)))
    assert list(table_of(database, Deployable, 'name')) == ['compute-1_0000:01:00.0']
    store(database, report())
    assert uuids_of_all(database) == set()


def test_a_part_that_moves_in_its_tree_stays_itself(database: Database) -> None:
    device = with_parts(card(1), 'a', 'b')
    a, b = device.root.parts
    store(database, report(device))
    before = table_of(database, Deployable, 'name', 'uuid')
    tree = replace(device.root, parts=(replace(a, parts=(b,)),))
    store(database, report(replace(device, root=tree)))
    assert table_of(database, Deployable, 'name', 'uuid') == before
    # And then its new parent goes, and it moves back.
    store(database, report(replace(device, root=replace(device.root, parts=(b,)))))
    rows = table_of(database, Deployable, 'name', 'uuid', 'parent_id', 'root_id', 'id')
    root = rows[device.root.name][3]
    assert rows[b.name] == (*before[b.name], root, root, rows[b.name][3])
    assert a.name not in rows


def test_what_did_not_change_keeps_its_uuid_and_its_date(database: Database) -> None:
    store(database, host(3, 4))
    before = uuids_of_all(database)
    dates = table_of(database, Device, 'hardware_id', 'updated_at')
    changed = replace(card(1, units=4, serial='serial-1'), model='A2')
    first, _, last = host(3, 4).devices
    store(database, report(first, changed, last))
    assert uuids_of_all(database) == before
    now = table_of(database, Device, 'hardware_id', 'updated_at')
    assert now['serial-1'] != dates['serial-1']
    assert now['serial-0'] == dates['serial-0'] == now['serial-2'] == (None,)


def test_hosts_do_not_concern_one_another(database: Database) -> None:
    other = report(
        replace(card(1, serial='s'), root=replace(card(1).root, name='compute-2_x')),
        hostname='compute-2',
    )
    store(database, report(card(1, serial='s')), other, report())
    assert table_of(database, Device, 'hostname', 'hardware_id') == {
        'compute-2': ('s',)
    }


def test_a_deployable_of_another_host_is_refused(database: Database) -> None:
    store(database, report(card(1)))
    with pytest.raises(InvalidInput, match='belongs to another host'):
        store(database, replace(report(card(1)), hostname='compute-2'))
    assert table_of(database, Device, 'hostname') == {HOST: ()}
    assert database.read(services.digest_of, 'compute-2') is None


# --- cards that move ---


def test_cards_that_swap_slots_keep_their_rows(database: Database) -> None:
    """Their units swap keys, of which each deployable may have one only."""
    store(database, report(card(1, units=3, serial='a'), card(2, units=3, serial='b')))
    before = uuids_of_all(database)
    [arq] = hold(database, unit(1, 2).key)
    store(database, report(card(2, units=3, serial='a'), card(1, units=3, serial='b')))
    assert uuids_of_all(database) == before
    owners = table_of(database, AttachHandle, 'arq_uuid', 'key', 'info')
    assert owners[arq] == (unit(2, 2).key, unit(2, 2).info)
    addresses = table_of(database, Device, 'hardware_id', 'address')
    assert addresses == {'a': ('0000:02:00.0',), 'b': ('0000:01:00.0',)}


def test_units_may_trade_keys_within_a_card_that_moved(database: Database) -> None:
    one = card(1, units=3, serial='a')
    shifted = replace(one.root, units=tuple(unit(1, number) for number in (1, 2, 3)))
    store(database, report(one))
    before = uuids_of_all(database)
    store(database, report(replace(one, address='0000:01:00.1', root=shifted)))
    assert uuids_of_all(database) == before
    assert sorted(table_of(database, AttachHandle, 'key')) == [
        unit(1, number).key for number in (1, 2, 3)
    ]


def test_a_serial_number_learnt_later_changes_no_row_but_the_device(
    database: Database,
) -> None:
    store(database, report(card(1)))
    before = uuids_of_all(database)
    store(database, report(card(1, serial='s')))
    assert uuids_of_all(database) == before
    assert list(table_of(database, Device, 'hardware_id')) == ['s']


def test_another_card_in_a_held_slot_gets_a_provider_of_its_own(
    database: Database,
) -> None:
    store(database, report(card(1, serial='a')))
    hold(database, unit(1, 0).key)
    store(database, report(card(1, serial='b')))
    names = table_of(database, Deployable, 'name', 'rp_uuid', 'reserved')
    assert len(names) == 2
    assert len({rp_uuid for rp_uuid, _ in names.values()}) == 2
    assert names['compute-1_0000:01:00.0'][1] == 1


# --- what requests hold ---


def test_a_held_handle_is_marked_and_goes_with_its_request(database: Database) -> None:
    store(database, report(card(1, units=3, serial='s')))
    gone = unit(1, 1).key
    arqs = hold(database, gone)
    store(database, report(without_units(card(1, units=3, serial='s'), gone)))
    assert table_of(database, AttachHandle, 'key', 'missing')[gone] == (True,)
    release(database, arqs)
    assert gone not in table_of(database, AttachHandle, 'key')
    # The agent is asked for the whole, whatever else may be left over.
    assert database.read(services.digest_of, HOST) is None


def test_a_vanished_device_goes_with_the_last_of_its_requests(
    database: Database,
) -> None:
    store(database, report(card(1, units=3, serial='s'), card(2, serial='t')))
    first, second = hold(database, unit(1, 0).key, unit(1, 2).key)
    store(database, report(card(2, serial='t')))
    assert table_of(database, Device, 'hardware_id', 'health')['s'] == ('gone',)
    release(database, [first])
    assert sorted(table_of(database, AttachHandle, 'key')) == [
        unit(1, 2).key,
        unit(2, 0).key,
    ]
    release(database, [second])
    assert list(table_of(database, Device, 'hardware_id')) == ['t']


def test_a_device_that_comes_back_is_what_it_was(database: Database) -> None:
    store(database, host(2, 3))
    before = uuids_of_all(database)
    held = unit(1, 0).key
    hold(database, held)
    store(database, host(1, 3))
    assert len(uuids_of_all(database)) < len(before)
    store(database, host(2, 3))
    assert table_of(database, AttachHandle, 'key', 'missing')[held] == (False,)
    healths = table_of(database, Device, 'hardware_id', 'health', 'health_reason')
    assert healths['serial-1'] == ('ok', '')


def test_nothing_is_forgotten_while_it_is_held_or_there(database: Database) -> None:
    store(database, host(2, 3))
    hold(database, unit(1, 0).key)
    store(database, host(1, 3))
    before = uuids_of_all(database)
    with statements(database) as seen:
        database.write(inventory.forget_missing, HOST)
    assert uuids_of_all(database) == before
    assert len(seen) == 1
    assert database.read(services.digest_of, HOST) is not None


@pytest.mark.parametrize('to', ['held', 'free'])
def test_a_bind_or_release_that_is_faster_is_seen_the_second_time(
    database: Database, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    """Between the look at the rows and the change of them, somebody changes them."""
    store(database, report(card(1, units=2, serial='s')))
    key = unit(1, 1).key
    arqs = [] if to == 'held' else hold(database, key)
    uuid = add_arqs(database, 1)[0] if to == 'held' else None
    looks: list[int] = []
    original = inventory_rows.load

    def load_late(session: Session, hostname: str) -> Any:
        """Any: what the original returns."""
        found = original(session, hostname)
        looks.append(1)
        if len(looks) == 1:
            # In this very transaction: all that counts is that it came after the look.
            mine = update(AttachHandle).where(AttachHandle.key == key)
            session.execute(mine.values(arq_uuid=uuid))
            session.info['undone'] = True
        return found

    monkeypatch.setattr(inventory, 'load', load_late)
    store(database, report(without_units(card(1, units=2, serial='s'), key)))
    assert len(looks) == 2
    # The first attempt was undone, the bind or release in it as well.
    rows = table_of(database, AttachHandle, 'key', 'missing', 'arq_uuid')
    assert rows.get(key) == (None if to == 'held' else (True, arqs[0]))


def test_a_report_that_is_always_too_late_ends(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(database, report(card(1, units=2, serial='s')))
    key = unit(1, 1).key
    [uuid] = add_arqs(database, 1)
    original = inventory_rows.load

    def load_late(session: Session, hostname: str) -> Any:
        """Any: what the original returns."""
        found = original(session, hostname)
        mine = update(AttachHandle).where(AttachHandle.key == key)
        session.execute(mine.values(arq_uuid=uuid))
        return found

    monkeypatch.setattr(inventory, 'load', load_late)
    monkeypatch.setattr('time.sleep', lambda _seconds: None)
    with pytest.raises(HandlesContended):
        store(database, report())
