# SPDX-License-Identifier: Apache-2.0
"""Tests of the hold of devices."""

import pytest
from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Device
from cyborg_lite.db.devices import hold
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.inventory.host_report import HostReport
from tests.builders.reports import HOST, card
from tests.builders.table_rows import change_rows, read_column


@pytest.fixture
def device(database: Database) -> int:
    """Return the id of the first of two devices."""
    devices = card(0x3B, handles=2), card(0x5E, handles=2)
    database.write(reports.store_report, HostReport(HOST, 'boot', devices))
    return read_column(database, select(Device.id).order_by(Device.id))[0]


def read_status(database: Database, device: int) -> tuple[str, str]:
    statement = select(Device.status, Device.status_reason).where(Device.id == device)
    row = database.read(lambda session: session.execute(statement).one())
    return row.status, row.status_reason


def test_hold_with_trouble_ends_in_maintenance(database: Database, device: int) -> None:
    database.write(hold.hold_devices, [device], 'job')
    database.write(hold.end_hold, [device], 'job', 'rc 2')
    assert read_status(database, device) == (DeviceStatus.MAINTAINING, 'rc 2')


def test_maintenance_of_operator_outlasts_hold(database: Database, device: int) -> None:
    values = {'status': DeviceStatus.MAINTAINING, 'status_reason': 'new fan'}
    change_rows(database, Device, **values)
    database.write(hold.hold_devices, [device], 'job')
    database.write(hold.end_hold, [device], 'job')
    assert read_status(database, device) == (DeviceStatus.MAINTAINING, 'new fan')


def test_obstacle_names_foreign_use(database: Database, device: int) -> None:
    assert database.read(hold.find_obstacle, [device]) == ''
    change_rows(database, AttachHandle, in_use=True)
    obstacle = database.read(hold.find_obstacle, [device])
    assert obstacle.startswith('a program of its host uses it')
