# SPDX-License-Identifier: Apache-2.0
"""Host reports as rows: stable uuids, and no allocated handle is lost."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Deployable, Device
from cyborg_lite.db.inventory import agents, changes, reports
from cyborg_lite.errors.arqs import HandlesContended
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.devices.devices import NEW_DEVICE_REASON, DeviceStatus
from tests.builders.reports import (
    HOST,
    attach_handle,
    card,
    host,
    report,
    with_parts,
    without_handles,
)
from tests.builders.rows import add_arqs
from tests.builders.stored_hosts import (
    claim_handles,
    release_handles,
    store,
    table_of,
    uuids_of_all,
)

# --- rows ---


def test_new_device_held_back_waits_for_operator(database: Database) -> None:
    """A device that the host had before keeps its status."""
    store(database, report(card(1, serial='a')))
    cards = report(card(1, serial='a'), card(2, serial='b'))
    database.write(reports.store_report, cards, None, DeviceStatus.MAINTAINING)
    table = table_of(database, Device, 'hardware_id', 'status', 'status_reason')
    assert table['a'] == ('enabled', '')
    assert table['b'] == ('maintaining', NEW_DEVICE_REASON)


def test_report_removed_children_are_deleted(database: Database) -> None:
    store(database, report(with_parts(card(1), 'a', 'b')), report(card(1)))
    assert list(table_of(database, Deployable, 'name')) == ['compute-1_0000:01:00.0']
    store(database, report())
    assert uuids_of_all(database) == set()


def test_report_child_moved_in_tree_keeps_uuid(database: Database) -> None:
    device = with_parts(card(1), 'a', 'b')
    a, b = device.root.children
    store(database, report(device))
    before = table_of(database, Deployable, 'name', 'uuid')
    tree = replace(device.root, children=(replace(a, children=(b,)),))
    store(database, report(replace(device, root=tree)))
    assert table_of(database, Deployable, 'name', 'uuid') == before
    # The new parent is removed, and the child moves back.
    store(database, report(replace(device, root=replace(device.root, children=(b,)))))
    rows = table_of(database, Deployable, 'name', 'uuid', 'parent_id', 'root_id', 'id')
    root = rows[device.root.name][3]
    assert rows[b.name] == (*before[b.name], root, root, rows[b.name][3])
    assert a.name not in rows


def test_report_unchanged_rows_keep_uuid_and_date(database: Database) -> None:
    store(database, host(3, 4))
    before = uuids_of_all(database)
    dates = table_of(database, Device, 'hardware_id', 'updated_at')
    changed = replace(card(1, handles=4, serial='serial-1'), model='A2')
    first, _, last = host(3, 4).devices
    store(database, report(first, changed, last))
    assert uuids_of_all(database) == before
    now = table_of(database, Device, 'hardware_id', 'updated_at')
    assert now['serial-1'] != dates['serial-1']
    assert now['serial-0'] == dates['serial-0'] == now['serial-2'] == (None,)


def test_report_deployable_of_other_host_raises(database: Database) -> None:
    store(database, report(card(1)))
    with pytest.raises(InvalidInput, match='belongs to another host'):
        store(database, replace(report(card(1)), hostname='compute-2'))
    assert table_of(database, Device, 'hostname') == {HOST: ()}
    assert database.read(agents.find_agent, 'compute-2') is None


# --- devices that move ---


def test_report_new_serial_number_changes_device_only(database: Database) -> None:
    store(database, report(card(1)))
    before = uuids_of_all(database)
    store(database, report(card(1, serial='s')))
    assert uuids_of_all(database) == before
    assert list(table_of(database, Device, 'hardware_id')) == ['s']


def test_report_replaced_allocated_device_gets_new_provider(database: Database) -> None:
    store(database, report(card(1, serial='a')))
    claim_handles(database, attach_handle(1, 0).key)
    store(database, report(card(1, serial='b')))
    names = table_of(database, Deployable, 'name', 'rp_uuid', 'reserved')
    assert len(names) == 2
    assert len({rp_uuid for rp_uuid, _ in names.values()}) == 2
    assert names['compute-1_0000:01:00.0'][1] == 1


# --- handles of ARQs ---


def test_report_missing_allocated_handle_deleted_after_release(
    database: Database,
) -> None:
    store(database, report(card(1, handles=3, serial='s')))
    missing_key = attach_handle(1, 1).key
    arqs = claim_handles(database, missing_key)
    device = card(1, handles=3, serial='s')
    store(database, report(without_handles(device, missing_key)))
    assert table_of(database, AttachHandle, 'key', 'missing')[missing_key] == (True,)
    release_handles(database, arqs)
    assert missing_key not in table_of(database, AttachHandle, 'key')
    # Without a digest the agent sends the whole inventory again.
    agent = database.read(agents.find_agent, HOST)
    assert agent is not None
    assert agent.digest is None


def test_report_missing_device_deleted_after_last_release(database: Database) -> None:
    store(database, report(card(1, handles=3, serial='s'), card(2, serial='t')))
    first, second = claim_handles(
        database, attach_handle(1, 0).key, attach_handle(1, 2).key
    )
    store(database, report(card(2, serial='t')))
    assert table_of(database, Device, 'hardware_id', 'health')['s'] == ('gone',)
    release_handles(database, [first])
    assert sorted(table_of(database, AttachHandle, 'key')) == [
        attach_handle(1, 2).key,
        attach_handle(2, 0).key,
    ]
    release_handles(database, [second])
    assert list(table_of(database, Device, 'hardware_id')) == ['t']


def change_after_load(
    monkeypatch: pytest.MonkeyPatch, key: str, arq: str | None, times: int
) -> list[int]:
    """Let the owner of a handle change between the read and the write of a report.

    The same transaction changes the row; only the order matters.

    :param times: reads after which the owner changes
    :returns: a list that has an item for each read
    """
    loads: list[int] = []
    original = changes.load_inventory
    owned = update(AttachHandle).where(AttachHandle.key == key).values(arq_uuid=arq)

    # Any: the inventory and its keys.
    def load_late(session: Session, hostname: str) -> Any:
        loaded = original(session, hostname)
        loads.append(1)
        if len(loads) <= times:
            session.execute(owned)
        return loaded

    monkeypatch.setattr(reports, 'load_inventory', load_late)
    return loads


@pytest.mark.parametrize('state', ['claimed', 'free'])
def test_report_concurrent_claim_or_release_is_retried(
    database: Database, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    store(database, report(card(1, handles=2, serial='s')))
    key = attach_handle(1, 1).key
    arqs = [] if state == 'claimed' else claim_handles(database, key)
    uuid = add_arqs(database, 1)[0] if state == 'claimed' else None
    loads = change_after_load(monkeypatch, key, uuid, times=1)
    store(database, report(without_handles(card(1, handles=2, serial='s'), key)))
    assert len(loads) == 2
    # The first attempt was rolled back, with the claim or release in it.
    rows = table_of(database, AttachHandle, 'key', 'missing', 'arq_uuid')
    assert rows.get(key) == (None if state == 'claimed' else (True, arqs[0]))


def test_report_constant_contention_raises(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(database, report(card(1, handles=2, serial='s')))
    [uuid] = add_arqs(database, 1)
    change_after_load(monkeypatch, attach_handle(1, 1).key, uuid, times=99)
    monkeypatch.setattr('time.sleep', lambda _seconds: None)
    with pytest.raises(HandlesContended):
        store(database, report())
