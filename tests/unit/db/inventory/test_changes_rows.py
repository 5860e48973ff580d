# SPDX-License-Identifier: Apache-2.0
"""Stored inventory of a host as a layout with primary keys."""

from dataclasses import replace

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Deployable, Device
from cyborg_lite.db.devices.deployables import create_attribute
from cyborg_lite.db.inventory.changes import RowIds, load_inventory
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.diff import diff_report
from tests.builders.reports import HOST, attach_handle, card, report, with_parts
from tests.builders.stored_hosts import claim_handles, store, table_of
from tests.support.sql_statements import statements


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


def test_load_inventory_returns_primary_keys_by_path(database: Database) -> None:
    store(database, report(with_parts(card(1, serial='s'), 'a')))
    _, ids = database.read(load_inventory, HOST)
    (device_id,) = table_of(database, Device, 'id')
    assert ids.devices == {'s': int(device_id)}
    deployables = table_of(database, Deployable, 'name', 'id')
    root = 'compute-1_0000:01:00.0'
    assert ids.deployables == {
        ('s', ''): deployables[root][0],
        ('s', '_a'): deployables[f'{root}_a'][0],
    }
    handles = table_of(database, AttachHandle, 'key', 'id')
    assert ids.handles == {
        ('s', '', '0000:01:00.0'): handles['0000:01:00.0'][0],
        ('s', '_a', '0000:01:00.0/a'): handles['0000:01:00.0/a'][0],
    }


def test_load_inventory_separates_attributes_of_admin(database: Database) -> None:
    store(database, report(card(1, serial='s')))
    (deployable_id,) = table_of(database, Deployable, 'id')
    database.write(create_attribute, int(deployable_id), 'rack', '7')
    inventory, ids = database.read(load_inventory, HOST)
    assert list(ids.admin_attributes) == [('s', '', 'rack')]
    assert ('s', '', 'rack') not in inventory.layout.attributes
    assert inventory.layout.attributes['s', '', 'numa'] == '0'


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


def test_load_inventory_names_claimed_handles(database: Database) -> None:
    store(database, report(card(1, handles=2, serial='s')))
    key = attach_handle(1, 1).key
    claim_handles(database, key)
    inventory, _ = database.read(load_inventory, HOST)
    assert inventory.claimed == {('s', '', key)}
