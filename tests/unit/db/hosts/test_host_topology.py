# SPDX-License-Identifier: Apache-2.0
"""Topologies of hosts, and the availability of units."""

from dataclasses import replace

import pytest
from sqlalchemy import insert, select
from sqlalchemy.orm import InstrumentedAttribute

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Deployable, Device, LoadedRegion
from cyborg_lite.db.hosts import host_topology
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.hosts import HostNotFound
from cyborg_lite.model.hosts.topology import Availability, HostTopology, TopologyUnit
from cyborg_lite.model.inventory.host_report import Deployable as ReportedDeployable
from tests.builders.bound_arqs import bind_arqs
from tests.builders.reports import HOST, card, report
from tests.builders.rows import PROJECT, add_arqs, add_card
from tests.builders.table_rows import change_rows, execute, read_column
from tests.support.sql_statements import statements


def read(database: Database, hostname: str = HOST) -> HostTopology:
    return database.read(host_topology.read_host_topology, hostname)


def list_units(database: Database) -> list[TopologyUnit]:
    return [
        unit
        for device in read(database).devices
        for item in device.deployables
        for unit in item.units
    ]


def test_topology_has_report_of_host(database: Database) -> None:
    gpu = replace(card(1, handles=2), std_board_info={'numa_node': '1'})
    parts = tuple(ReportedDeployable(f'{gpu.root.name}_{n}', 'FPGA') for n in 'ba')
    tree = replace(gpu.root, children=parts)
    fpga = replace(card(2, handles=0), root=replace(tree, name=f'{HOST}_fpga'))
    database.write(reports.store_report, report(gpu, fpga))
    topology = read(database)
    assert [node.number for node in topology.numa_nodes] == [1, None]
    (device,) = topology.numa_nodes[0].devices
    assert (device.address, device.model) == (gpu.control_address, gpu.model)
    (root,) = device.deployables
    assert (root.name, root.total) == (gpu.root.name, gpu.root.total)
    assert root.parent_uuid is None
    assert len(root.units) == 2
    (device,) = topology.numa_nodes[1].devices
    root, *children = device.deployables
    assert [item.name[-1] for item in children] == ['a', 'b']
    assert {item.parent_uuid for item in children} == {root.uuid}


def test_topology_names_user_of_unit(database: Database) -> None:
    uuids = add_arqs(database, 1)
    instance = bind_arqs(database, uuids, add_card(database, 2))
    used, free = sorted(list_units(database), key=lambda unit: unit.user is None)
    assert (used.availability, free.availability) == ('used', 'free')
    user = used.user
    assert user is not None
    assert (user.arq_uuid, user.project_id) == (uuids[0], PROJECT)
    assert user.instance_uuid == instance
    change_rows(database, AttachHandle, missing=True)
    owned_unit = next(unit for unit in list_units(database) if unit.user)
    assert (owned_unit.availability, owned_unit.user) == ('broken', user)


@pytest.mark.parametrize(
    ('column', 'value', 'availability', 'reason'),
    [
        (AttachHandle.missing, True, 'broken', 'missing on the host'),
        (Device.health, 'gone', 'broken', 'The health of the device is gone'),
        (Device.health, 'degraded', 'free', ''),
        (Device.status, 'maintaining', 'reserved', 'in maintenance'),
        (Device.conflict, 'nova', 'reserved', 'Another service manages'),
        (AttachHandle.in_use, True, 'reserved', 'A program of the host'),
        (AttachHandle.preparing, True, 'free', ''),
        (AttachHandle.clean_state, 'dirty', 'dirty', 'clean state is dirty'),
    ],
)
def test_availability_follows_state_of_unit(
    database: Database,
    column: InstrumentedAttribute[object],
    value: object,
    availability: str,
    reason: str,
) -> None:
    add_card(database, 1)
    change_rows(database, column.class_, **{column.key: value})
    (unit,) = list_units(database)
    assert unit.availability == availability
    assert reason in unit.reason
    assert bool(unit.reason) is bool(reason)


def test_availability_unusable_region_is_broken(database: Database) -> None:
    add_card(database, 1)
    (deployable,) = read_column(database, select(Deployable.id))
    values = {'deployable_id': deployable, 'unusable_reason': 'The load failed.'}
    execute(database, insert(LoadedRegion), values)
    (unit,) = list_units(database)
    assert unit.availability is Availability.BROKEN
    assert unit.reason == 'The region is unusable: The load failed.'


def test_topology_reads_five_statements(database: Database) -> None:
    for _ in range(3):
        add_card(database, 4)
    with statements(database) as sql:
        read(database)
    assert len([text for text in sql if text.startswith('SELECT')]) == 5


def test_topology_unknown_host_raises(database: Database) -> None:
    with pytest.raises(HostNotFound):
        read(database, 'elsewhere')
