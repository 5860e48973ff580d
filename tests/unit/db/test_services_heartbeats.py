# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of agents: one statement, and two more for telemetry."""

from dataclasses import replace

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.devices.devices import DeviceRecord
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.services import HeartbeatDetails
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.reports import HOST, host
from tests.support.sql_statements import statements

TELEMETRY = Usage(
    busy_percent=35.0, memory_used=2**34, temperature=60.0, counters={'fatal': 0}
)


def record_heartbeat(database: Database, telemetry: dict[str, Usage]) -> bool:
    digest = host(64, 2).digest
    details = HeartbeatDetails('boot', telemetry)
    return database.write(services.record_agent_heartbeat, HOST, '1.0', digest, details)


def list_devices(database: Database) -> dict[str, DeviceRecord]:
    """Return the devices by PCI address, which follows the order of creation."""
    records = database.read(devices.list_devices, Query())
    return {f'0000:{number:02x}:00.0': record for number, record in enumerate(records)}


def test_heartbeat_without_telemetry_costs_one_statement(database: Database) -> None:
    database.write(reports.store_report, host(64, 2))
    with statements(database) as sql:
        assert not record_heartbeat(database, {})
    assert len(sql) == 1


def test_heartbeat_with_telemetry_costs_three_statements(database: Database) -> None:
    database.write(reports.store_report, host(64, 2))
    telemetry = {f'0000:{bus:02x}:00.0': TELEMETRY for bus in range(64)}
    with statements(database) as sql:
        assert not record_heartbeat(database, telemetry)
    assert len(sql) == 3
    assert all(record.usage == TELEMETRY for record in list_devices(database).values())


def test_heartbeat_keeps_telemetry_of_omitted_devices(database: Database) -> None:
    database.write(reports.store_report, host(2, 1))
    assert [record.usage for record in list_devices(database).values()] == [None, None]
    record_heartbeat(database, {'0000:00:00.0': TELEMETRY})
    hotter = replace(TELEMETRY, temperature=90.0, health=Health.DEGRADED, reason='hot')
    record_heartbeat(database, {'0000:01:00.0': hotter})
    assert [record.usage for record in list_devices(database).values()] == [
        TELEMETRY,
        hotter,
    ]


def test_heartbeat_telemetry_keeps_updated_at(database: Database) -> None:
    database.write(reports.store_report, host(1, 1))
    record_heartbeat(database, {'0000:00:00.0': TELEMETRY})
    (record,) = list_devices(database).values()
    assert record.updated_at is None


def test_heartbeat_telemetry_of_unknown_device_needs_report(database: Database) -> None:
    database.write(reports.store_report, host(1, 1))
    assert record_heartbeat(database, {'0000:99:00.0': TELEMETRY})
    assert [record.usage for record in list_devices(database).values()] == [None]
