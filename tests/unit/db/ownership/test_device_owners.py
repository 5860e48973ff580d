# SPDX-License-Identifier: Apache-2.0
"""Devices that another service manages too, and PCI functions of devices."""

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR
from tests.builders.provider_rows import add_device
from tests.builders.reports import HOST, card, report
from tests.builders.service_rows import record_heartbeat
from tests.support.sql_statements import statements, writes


def test_list_device_functions_includes_functions_of_handles(
    database: Database,
) -> None:
    database.write(reports.store_report, report(card(0x3B, handles=2)))
    add_device(database, 'other', 'x')
    (functions,) = database.read(device_owners.list_device_functions, HOST).values()
    assert functions == {'0000:3b:00.0', '0000:3b:00.1'}


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
