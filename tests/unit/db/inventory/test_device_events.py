# SPDX-License-Identifier: Apache-2.0
"""History of devices: the changes that store an event, and the query."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cyborg_lite.db.core.clock import read_time_before
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device, DeviceEvent, Service
from cyborg_lite.db.devices import cleanings, devices
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.inventory import device_events, reports
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.model.devices.cleaning import CleanProgressState, UnitSelection
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.events import DeviceEventKind
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.reports import HOST, card, report
from tests.builders.table_rows import change_rows
from tests.builders.unclean_units import build_progress, lease_clean_job, release_unit


@pytest.fixture
def uuid(database: Database) -> str:
    """Report a device and return its uuid."""
    database.write(reports.store_report, report(card(1)))
    (device,) = database.read(devices.list_devices, Query())
    return device.uuid


def list_kinds(database: Database, uuid: str) -> list[str]:
    return [event.kind for event in database.read(device_events.list_events, uuid)]


def test_health_change_sets_health_since(database: Database, uuid: str) -> None:
    old = database.read(read_time_before, 3600)
    change_rows(database, Device, health_since=old)
    changed = replace(card(1), model='Another name')
    database.write(reports.store_report, report(changed))
    (device,) = database.read(devices.list_devices, Query())
    assert device.health_since == old
    ill = replace(changed, health=Health.DEGRADED, health_reason='hot')
    database.write(reports.store_report, report(ill))
    (device,) = database.read(devices.list_devices, Query())
    assert device.health_since is not None
    assert device.health_since > old + timedelta(minutes=30)


def test_owner_change_stores_event(database: Database, uuid: str) -> None:
    for reason in ('Nova', 'Nova', ''):
        database.write(device_owners.store_conflicts, {uuid: reason})
    events = database.read(device_events.list_events, uuid)
    assert [event.reason for event in events] == ['', 'Nova', '']


def test_forgotten_host_keeps_history(database: Database, uuid: str) -> None:
    change_rows(database, Service, state='down')
    database.write(hosts.forget_host, HOST)
    assert list_kinds(database, uuid) == ['removed', 'added']


def test_list_events_device_of_earlier_release_is_empty(
    database: Database, uuid: str
) -> None:
    database.write(device_events.delete_old_events, database.read(read_time_before, -1))
    assert database.read(device_events.list_events, uuid) == ()


def test_delete_old_events_spares_recent_events(database: Database, uuid: str) -> None:
    database.write(devices.set_device_status, uuid, DeviceStatus.MAINTAINING)
    old = database.read(read_time_before, 7200)
    is_added = DeviceEvent.kind == DeviceEventKind.ADDED
    change_rows(database, DeviceEvent, is_added, at=old)
    limit = database.read(read_time_before, 3600)
    assert database.write(device_events.delete_old_events, limit) == 1
    assert list_kinds(database, uuid) == ['status-changed']


# --- events of devices that jobs store: cleaning, modes and programming -------------


Events = list[tuple[str, str, str]]


def list_events(database: Database, uuid: str) -> Events:
    """Return kind, value and reason of the events, the oldest first."""
    events = database.read(device_events.list_events, uuid)
    return [(event.kind, event.value, event.reason) for event in reversed(events)]


def test_failed_and_repeated_clean_are_events(database: Database) -> None:
    device = release_unit(database)
    for state in (CleanProgressState.FAILED, CleanProgressState.SUCCEEDED):
        job = lease_clean_job(database)
        work = database.write(cleanings.begin_cleaning, job)
        assert work is not None
        # A second attempt of the job is no second clean.
        assert database.write(cleanings.begin_cleaning, job) is not None
        progress = build_progress(state)
        if state is CleanProgressState.SUCCEEDED:
            database.write(cleanings.record_clean, job, work, progress)
            continue
        failure = 'medium error'
        database.write(cleanings.record_clean_failure, job, work, failure, progress)
        database.write(cleanings.retry_cleaning, UnitSelection(device), 'Jo')
    events = database.read(device_events.list_events, device)
    assert work is not None
    assert [kind for kind, _, _ in list_events(database, device)] == [
        'cleaning-started',
        'cleaning-failed',
        'cleaning-started',
        'cleaned',
    ]
    assert {event.unit for event in events} == {work.order.handle.key}
    assert ('cleaning-failed', '', 'medium error') in list_events(database, device)


def test_accepted_unit_is_event_with_name(database: Database) -> None:
    device = release_unit(database)
    job = lease_clean_job(database)
    work = database.write(cleanings.begin_cleaning, job)
    assert work is not None
    database.write(cleanings.record_clean_failure, job, work, 'medium error')
    database.write(cleanings.accept_units, UnitSelection(device), 'Jo')
    accepted = 'unit-accepted', '', 'Accepted by Jo.'
    assert list_events(database, device)[-1] == accepted
