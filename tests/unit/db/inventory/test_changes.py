# SPDX-License-Identifier: Apache-2.0
"""Changes by reports: their statements, untouched rows and Placement jobs."""

from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import delete

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Attribute, Deployable, Device, Job
from cyborg_lite.db.devices import deployables
from cyborg_lite.db.inventory.changes import RowIds, load_inventory
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.diff import diff_report
from tests.builders.reports import (
    HOST,
    attach_handle,
    card,
    host,
    report,
    with_parts,
)
from tests.builders.stored_hosts import (
    claim_handles,
    jobs_of,
    release_handles,
    store,
    table_of,
    uuids_of_all,
)
from tests.builders.table_rows import execute
from tests.support.concurrent_calls import run_at_once
from tests.support.sql_statements import statements, writes

# --- attributes of admins ---


@pytest.mark.parametrize('is_removed', [False, True])
def test_attribute_of_admin_leaves_with_deployable_only(
    database: Database, is_removed: bool
) -> None:
    store(database, report(card(1)))
    [deployable] = table_of(database, Deployable, 'id')
    database.write(deployables.create_attribute, int(deployable), 'rack', '7')
    store(database, report() if is_removed else report(replace(card(1), model='A2')))
    values = table_of(database, Attribute, 'key', 'value')
    assert values.get('rack') == (None if is_removed else ('7',))


# --- jobs of the Placement sync ---


def test_report_change_adds_one_placement_sync(database: Database) -> None:
    store(database, report(card(1)))
    assert jobs_of(database) == [('reconcile', HOST, {'hostname': HOST}, 0)]
    store(database, report(card(1), card(2)))
    assert len(jobs_of(database)) == 1


def test_report_change_unknown_to_placement_adds_no_job(database: Database) -> None:
    store(database, report(card(1)))
    execute(database, delete(Job))
    store(database, report(replace(card(1), driver='other')))
    assert jobs_of(database) == []


def test_release_of_missing_device_adds_placement_sync(database: Database) -> None:
    store(database, report(card(1, serial='s')))
    arqs = claim_handles(database, attach_handle(1, 0).key)
    store(database, report())
    execute(database, delete(Job))
    release_handles(database, arqs)
    assert [kind for kind, *_ in jobs_of(database)] == ['reconcile']


# --- number of statements ---


def test_report_first_of_large_host_costs_eleven_statements(database: Database) -> None:
    with statements(database) as sql:
        store(database, host(64, 16))
    assert len(sql) <= 11
    assert len(table_of(database, AttachHandle, 'uuid')) == 64 * 16


def test_report_child_deployables_cost_two_statements_more(database: Database) -> None:
    devices = [with_parts(device, 'a', 'b') for device in host(64, 16).devices]
    with statements(database) as sql:
        store(database, report(*devices))
    assert len(sql) <= 13
    assert len(table_of(database, Deployable, 'uuid')) == 64 * 3


def test_report_one_changed_device_writes_one_row(database: Database) -> None:
    store(database, host(64, 16))
    *unchanged, last = host(64, 16).devices
    changed = replace(last, health_reason='warm')
    with statements(database) as sql:
        store(database, report(*unchanged, changed))
    assert len(sql) <= 6
    assert [text.split()[1] for text in writes(sql)] == ['INTO', 'devices']


def test_report_empty_host_costs_twelve_statements(database: Database) -> None:
    store(database, host(64, 16))
    with statements(database) as sql:
        store(database, report())
    assert len(sql) <= 12
    assert uuids_of_all(database) == set()


# --- concurrent conductors ---


def test_report_concurrent_conductors_store_one_inventory(database: Database) -> None:
    assert run_at_once([partial(store, database, host(4, 4))] * 4) == [None] * 4
    assert len(table_of(database, Device, 'hardware_id')) == 4
    assert len(table_of(database, AttachHandle, 'uuid')) == 16


# --- stored inventory of a host as a layout with primary keys -----------------------


def test_load_inventory_unknown_host_costs_one_statement(database: Database) -> None:
    with statements(database) as sql:
        inventory, ids = database.read(load_inventory, HOST)
    assert len(sql) == 1
    assert inventory.layout.devices == {}
    assert ids == RowIds()


def test_load_inventory_large_host_costs_four_statements(database: Database) -> None:
    store(database, report(*(card(bus, handles=4) for bus in range(16))))
    with statements(database) as sql:
        inventory, _ = database.read(load_inventory, HOST)
    assert len(sql) == 4
    assert len(inventory.layout.devices) == 16
    assert len(inventory.layout.handles) == 64


def test_load_inventory_of_stored_report_has_no_difference(database: Database) -> None:
    stored = report(with_parts(card(1), 'a', 'b'), card(2, handles=3, serial='s'))
    store(database, stored)
    inventory, _ = database.read(load_inventory, HOST)
    difference = diff_report(inventory, stored)
    for changes in (
        difference.devices,
        difference.deployables,
        difference.handles,
        difference.attributes,
    ):
        assert not changes.new
        assert not changes.changed


def test_store_typed_attributes_change_concerns_placement(database: Database) -> None:
    typed = typed_attributes.NUMA_NODE.of(1), typed_attributes.MEMORY.of(16)
    first = card(1, serial='s')
    store(database, report(first))
    second = replace(first, root=replace(first.root, typed_attributes=typed))
    stored, _ = database.read(load_inventory, HOST)
    assert diff_report(stored, report(second)).concern_placement
    store(database, report(second))
    stored, _ = database.read(load_inventory, HOST)
    facts = stored.layout.deployables['s', '']
    assert {item.name: item.value for item in facts.typed_attributes} == {
        'memory_mib': '16',
        'numa_node': '1',
    }
    assert not diff_report(stored, report(second))
