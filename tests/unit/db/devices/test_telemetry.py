# SPDX-License-Identifier: Apache-2.0
"""Telemetry of many hosts in few statements."""

from dataclasses import replace

from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.db.devices.devices import store_telemetry
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import HostReport
from tests.builders.reports import HOST, host
from tests.support.sql_statements import statements, writes


def report_of(name: str, devices: int) -> HostReport:
    report = host(devices, 1)
    return replace(
        report,
        hostname=name,
        devices=tuple(
            replace(
                device,
                root=replace(device.root, name=device.root.name.replace(HOST, name)),
            )
            for device in report.devices
        ),
    )


def read_telemetry(database: Database) -> dict[tuple[str, str], object]:
    columns = Device.hostname, Device.control_address, Device.telemetry
    rows = database.read(lambda session: session.execute(select(*columns)).all())
    return {(row.hostname, row.control_address): row.telemetry for row in rows}


def test_store_telemetry_of_unknown_devices_changes_nothing(database: Database) -> None:
    database.write(reports.store_report, report_of(HOST, 2))
    unknown = {HOST: {'ffff:00:00.0': Usage()}, 'other': {'0000:00:00.0': Usage()}}
    with statements(database) as sql:
        database.write(store_telemetry, unknown)
    assert writes(sql) == []
    assert set(read_telemetry(database).values()) == {None}
