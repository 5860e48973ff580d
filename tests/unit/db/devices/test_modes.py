# SPDX-License-Identifier: Apache-2.0
"""Tests of the hold of a device while its mode changes."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Device
from cyborg_lite.db.devices import cleanings, devices, hold, modes, reconfigurations
from cyborg_lite.db.devices.reconfigurations import NewReconfiguration
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.errors.base import Conflict
from cyborg_lite.errors.devices import (
    DeviceNotFound,
    ModeRefused,
    ReconfigurationRefused,
)
from cyborg_lite.errors.drivers import DeviceBusy
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.inventory.host_report import CleaningPolicy, HostReport
from cyborg_lite.model.inventory.host_report import Device as ReportedDevice
from cyborg_lite.model.jobs import Job, ModePayload, ReconfigurePayload
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.reports import HOST, card, with_root
from tests.builders.rows import OWNER
from tests.builders.table_rows import change_rows, read_column
from tests.builders.unclean_units import lease_clean_job


def report_cards(database: Database, first: ReportedDevice) -> None:
    """Report two cards, of which the second does not change."""
    cards = first, card(0x5E, handles=2)
    database.write(reports.store_report, HostReport(HOST, 'boot', cards))


@pytest.fixture
def payload(database: Database) -> ModePayload:
    report_cards(database, card(0x3B, handles=2))
    (first, _) = database.read(devices.list_devices, Query())
    return ModePayload(first.uuid, 'fast')


def lease(database: Database, payload: ModePayload) -> Job:
    database.write(modes.add_change, payload, None)
    (job,) = database.write(queue.lease_jobs, OWNER, 10, (OperationKind.MODE,))
    return job


def list_preparing(database: Database) -> list[bool]:
    statement = select(AttachHandle.preparing).order_by(AttachHandle.id)
    return read_column(database, statement)


def test_hold_concerns_one_device(database: Database, payload: ModePayload) -> None:
    job = lease(database, payload)
    device, providers = database.write(modes.hold_device, job, payload)
    assert (device.hostname, device.address) == (HOST, '0000:3b:00.0')
    assert providers == (card(0x3B).root.provider_uuid,)
    assert sorted(list_preparing(database)) == [False, False, True, True]
    assert database.write(modes.hold_device, job, payload) == (device, providers)
    database.write(modes.end_change, job)
    assert not any(list_preparing(database))


def test_new_handles_of_held_device_do_not_end_hold(
    database: Database, payload: ModePayload
) -> None:
    """The host reports other handles before the end of the change."""
    job = lease(database, payload)
    device, _ = database.write(modes.hold_device, job, payload)
    report_cards(database, card(0x3B, handles=4))
    new = NewReconfiguration(device.uuid, 'set', {}, 'admin', 1000)
    with pytest.raises(ReconfigurationRefused, match='is being changed'):
        database.write(reconfigurations.add_change, new, lambda facts: False)
    database.write(modes.end_change, job)
    uuid = database.write(reconfigurations.add_change, new, lambda facts: False)
    kinds = (OperationKind.CONFIGURATION,)
    (running,) = database.write(queue.lease_jobs, OWNER, 10, kinds)
    order = ReconfigurePayload(device.uuid, uuid)
    database.write(reconfigurations.begin_change, running, order, lambda facts: False)
    report_cards(database, card(0x3B, handles=6))
    with pytest.raises(ModeRefused, match='is being changed'):
        database.write(modes.add_change, payload, None)
    # Another worker of the same change goes on.
    database.write(reconfigurations.begin_change, running, order, lambda facts: False)


def test_new_unit_of_held_device_is_cleaned_later(
    database: Database, payload: ModePayload
) -> None:
    job = lease(database, payload)
    database.write(modes.hold_device, job, payload)
    new, always = card(0x3B, handles=3), CleaningPolicy.ALWAYS
    handles = tuple(replace(item, cleaning=always) for item in new.root.handles)
    report_cards(database, with_root(new, handles=handles))
    clean = lease_clean_job(database)
    with pytest.raises(DeviceBusy, match='is being changed'):
        database.write(cleanings.begin_cleaning, clean)
    database.write(modes.end_change, job)
    assert database.write(cleanings.begin_cleaning, clean) is not None


def read_status(database: Database, payload: ModePayload) -> tuple[str, str]:
    is_device = Device.uuid == payload.device_uuid
    statement = select(Device.status, Device.status_reason).where(is_device)
    row = database.read(lambda session: session.execute(statement).one())
    return row.status, row.status_reason


def test_enable_of_held_device_is_refused(
    database: Database, payload: ModePayload
) -> None:
    """Placement would offer its handles, which no ARQ can claim."""
    job = lease(database, payload)
    database.write(modes.hold_device, job, payload)
    uuid, enabled = payload.device_uuid, DeviceStatus.ENABLED
    with pytest.raises(Conflict, match='is being changed'):
        database.write(devices.set_device_status, uuid, enabled)
    database.write(modes.end_change, job, 'It broke.', is_known=False)
    status, reason = read_status(database, payload)
    assert (status, 'It broke.' in reason) == (DeviceStatus.MAINTAINING, True)
    database.write(devices.set_device_status, uuid, enabled)
    assert read_status(database, payload) == (DeviceStatus.ENABLED, '')


def test_host_enable_leaves_held_device_to_its_job(
    database: Database, payload: ModePayload
) -> None:
    database.write(hosts.set_status, HOST, DeviceStatus.MAINTAINING, 'fan')
    database.write(devices.set_device_status, payload.device_uuid, DeviceStatus.ENABLED)
    job = lease(database, payload)
    database.write(modes.hold_device, job, payload)
    assert database.write(hosts.set_status, HOST, DeviceStatus.ENABLED) == 1
    assert read_status(database, payload)[0] == DeviceStatus.MAINTAINING
    database.write(modes.end_change, job)
    assert read_status(database, payload) == (DeviceStatus.ENABLED, '')


def test_failed_change_can_be_retried(database: Database, payload: ModePayload) -> None:
    job = lease(database, payload)
    database.write(modes.hold_device, job, payload)
    database.write(modes.end_change, job, 'It broke.')
    database.write(administration.retry_job, job.uuid)
    (next_job,) = database.write(queue.lease_jobs, OWNER, 10, (OperationKind.MODE,))
    database.write(modes.hold_device, next_job, payload)
    assert sorted(list_preparing(database)) == [False, False, True, True]


def test_removed_device_ends_change(database: Database, payload: ModePayload) -> None:
    job = lease(database, payload)
    database.write(modes.hold_device, job, payload)
    removed = Device.uuid == payload.device_uuid
    change_rows(database, Device, removed, uuid='00000000-0000-4000-8000-000000000000')
    database.write(modes.end_change, job, 'It is gone.')
    change = database.read(modes.find_change, payload.device_uuid)
    assert change is not None
    assert change.state == 'failed'
    with pytest.raises(DeviceNotFound):
        database.read(hold.find_device, payload.device_uuid)
