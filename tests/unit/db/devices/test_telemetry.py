# SPDX-License-Identifier: Apache-2.0
"""Telemetry of many hosts in few statements."""

from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.db.devices.devices import store_telemetry
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.devices.telemetry import Usage
from tests.builders.reports import HOST, host
from tests.builders.table_rows import read_column
from tests.support.sql_statements import statements, writes


def test_store_telemetry_of_unknown_devices_changes_nothing(database: Database) -> None:
    database.write(reports.store_report, host(2, 1))
    unknown = {HOST: {'ffff:00:00.0': Usage()}, 'other': {'0000:00:00.0': Usage()}}
    with statements(database) as sql:
        database.write(store_telemetry, unknown)
    assert writes(sql) == []
    assert read_column(database, select(Device.telemetry)) == [None, None]
