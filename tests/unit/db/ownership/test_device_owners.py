# SPDX-License-Identifier: Apache-2.0
"""Devices that another service manages too, and PCI functions of devices."""

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.ownership.device_owners import ContestedDevice
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.provider_rows import add_device, change_device
from tests.builders.reports import HOST, card, report
from tests.builders.service_rows import record_heartbeat
from tests.support.sql_statements import statements, writes


def _list_uuids_by_host(database: Database) -> dict[str, str]:
    """Return the uuids of the devices by host."""
    listed = database.read(devices.list_devices, Query())
    return {device.hostname: device.uuid for device in listed}


def test_list_device_functions_includes_functions_of_handles(
    database: Database,
) -> None:
    database.write(reports.store_report, report(card(0x3B, handles=2)))
    add_device(database, 'other', 'x')
    (functions,) = database.read(device_owners.list_device_functions, HOST).values()
    assert functions == {'0000:3b:00.0', '0000:3b:00.1'}


def test_store_conflicts_changes_health_until_cleared(database: Database) -> None:
    rp_uuid = add_device(database, HOST, 'a')
    change_device(database, rp_uuid, health='degraded', health_reason='hot')
    uuid = _list_uuids_by_host(database)[HOST]
    for reason, expected in (
        ('nova', (Health.CONFLICT, 'nova')),
        ('', ('degraded', 'hot')),
    ):
        database.write(device_owners.store_conflicts, {uuid: reason})
        (device,) = database.read(devices.list_devices, Query())
        assert (device.health, device.health_reason) == expected


def test_store_conflicts_report_keeps_conflict(database: Database) -> None:
    database.write(reports.store_report, report(card(0x3B)))
    database.write(
        device_owners.store_conflicts, {_list_uuids_by_host(database)[HOST]: 'nova'}
    )
    database.write(reports.store_report, report(card(0x3B), card(0x5E)))
    assert database.read(device_owners.list_contested_devices) == (
        ContestedDevice(HOST, '0000:3b:00.0', 'nova'),
    )


def test_list_contested_devices_merges_placement_and_agent(database: Database) -> None:
    first = add_device(database, 'host-b', 'x')
    second = add_device(database, 'host-a', 'y')
    add_device(database, 'host-c', 'z')
    change_device(database, first, conflict='in Placement')
    change_device(database, second, health='conflict', health_reason='in nova.conf')
    assert [
        (device.hostname, device.reason)
        for device in database.read(device_owners.list_contested_devices)
    ] == [
        ('host-a', 'in nova.conf'),
        ('host-b', 'in Placement'),
    ]


def test_store_conflicts_empty_writes_nothing(database: Database) -> None:
    with statements(database) as sql:
        database.write(device_owners.store_conflicts, {})
    assert writes(sql) == []


def test_list_hosts_includes_agents_without_devices(database: Database) -> None:
    database.write(reports.store_report, report(card(0x3B)))
    database.write(services.record_heartbeat, AGENT, 'compute-9', '1.0')
    database.write(services.record_heartbeat, CONDUCTOR, 'controller', '1.0')
    assert database.read(device_owners.list_hosts) == (HOST, 'compute-9')


def test_is_known_host_by_device_or_agent(database: Database) -> None:
    assert not database.read(device_owners.is_known_host, 'compute-1')
    add_device(database, 'compute-1', 'gpu')
    record_heartbeat(database, 'compute-2')
    for host in ('compute-1', 'compute-2'):
        assert database.read(device_owners.is_known_host, host)
