# SPDX-License-Identifier: Apache-2.0
"""Generations of devices, attributes and device profiles."""

from dataclasses import replace

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.generation_changes import (
    change_configuration,
    change_mode,
    change_profile,
    create_device,
    create_profile,
    set_status,
)
from tests.builders.reports import HOST, card, report
from tests.support.sql_statements import statements


def read_device(database: Database) -> int:
    return database.read(devices.list_devices, Query())[0].generation


def test_changes_of_device_raise_generation(database: Database) -> None:
    uuid = create_device(database)
    assert read_device(database) == 0
    set_status(database, uuid, None)
    set_status(database, uuid, None)  # no change
    assert read_device(database) == 1
    database.write(hosts.set_status, HOST, DeviceStatus.ENABLED)
    assert read_device(database) == 2
    change_mode(database, uuid, None)
    change_configuration(database, uuid, None)
    assert read_device(database) == 4


def test_report_raises_generation_only_if_it_differs(database: Database) -> None:
    create_device(database)
    failed = replace(card(1), health=Health.FAILED)
    for _ in range(2):
        database.write(reports.store_report, report(failed))
        assert read_device(database) == 1


def test_telemetry_keeps_generation(database: Database) -> None:
    create_device(database)
    usage = {card(1).control_address: Usage(power=75.0)}
    database.write(devices.store_telemetry, {HOST: usage})
    [device] = database.read(devices.list_devices, Query())
    assert device.usage is not None
    assert device.generation == 0


def test_expected_generation_costs_one_statement(database: Database) -> None:
    counts = []
    for generation in (None, 0):
        uuid = create_profile(database)
        with statements(database) as executed:
            change_profile(database, uuid, generation)
        counts.append(len(executed))
    assert counts[1] == counts[0] + 1
