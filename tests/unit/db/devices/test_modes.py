# SPDX-License-Identifier: Apache-2.0
"""Tests of the hold of a device while its mode changes."""

from dataclasses import replace

import pytest
from sqlalchemy import select, update

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Device
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.devices import cleanings, devices, modes, reconfigurations
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
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.inventory.host_report import CleaningPolicy, HostReport
from cyborg_lite.model.jobs import Job, ModePayload, Owner, ReconfigurePayload
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.reports import HOST, card, with_root
from tests.builders.rows import OWNER
from tests.builders.unclean_units import lease_clean_job

_OTHER = Owner('other', OWNER.lease_ms)


@pytest.fixture
def payload(database: Database) -> ModePayload:
    cards = card(0x3B, handles=2), card(0x5E, handles=2)
    database.write(reports.store_report, HostReport(HOST, 'boot', cards))
    (first, _) = database.read(devices.list_devices, Query())
    return ModePayload(first.uuid, 'fast')


def lease(database: Database, payload: ModePayload) -> Job:
    database.write(modes.add_change, payload, None)
    (job,) = database.write(queue.lease_jobs, OWNER, 10, (OperationKind.MODE,))
    return job


def list_preparing(database: Database) -> list[bool]:
    statement = select(AttachHandle.preparing).order_by(AttachHandle.id)
    return list(database.read(lambda session: session.scalars(statement).all()))


def test_hold_concerns_one_device(database: Database, payload: ModePayload) -> None:
    job = lease(database, payload)
    device = database.write(modes.hold_device, job, payload)
    assert (device.hostname, device.address) == (HOST, '0000:3b:00.0')
    assert device.provider_uuids == (card(0x3B).root.provider_uuid,)
    assert sorted(list_preparing(database)) == [False, False, True, True]
    assert database.write(modes.hold_device, job, payload) == device
    database.write(modes.end_change, job)
    assert not any(list_preparing(database))


def test_new_handles_of_held_device_do_not_end_hold(
    database: Database, payload: ModePayload
) -> None:
    """The host reports other handles before the end of the change."""
    job = lease(database, payload)
    device = database.write(modes.hold_device, job, payload)
    cards = card(0x3B, handles=4), card(0x5E, handles=2)
    database.write(reports.store_report, HostReport(HOST, 'next', cards))
    new = NewReconfiguration(device.uuid, 'set', {}, 'admin', 1000)
    with pytest.raises(ReconfigurationRefused, match='is being changed'):
        database.write(reconfigurations.add_change, new, lambda facts: False)
    database.write(modes.end_change, job)
    uuid = database.write(reconfigurations.add_change, new, lambda facts: False)
    (running,) = database.write(
        queue.lease_jobs, OWNER, 10, (OperationKind.CONFIGURATION,)
    )
    order = ReconfigurePayload(device.uuid, uuid)
    database.write(reconfigurations.begin_change, running, order, lambda facts: False)
    cards = card(0x3B, handles=6), card(0x5E, handles=2)
    database.write(reports.store_report, HostReport(HOST, 'last', cards))
    with pytest.raises(ModeRefused, match='is being changed'):
        database.write(modes.add_change, payload, None)
    # Another worker of the same change goes on.
    database.write(reconfigurations.begin_change, running, order, lambda facts: False)


def test_new_unit_of_held_device_is_cleaned_later(
    database: Database, payload: ModePayload
) -> None:
    job = lease(database, payload)
    database.write(modes.hold_device, job, payload)
    new = card(0x3B, handles=3)
    handles = [
        replace(item, cleaning=CleaningPolicy.ALWAYS) for item in new.root.handles
    ]
    cards = with_root(new, handles=tuple(handles)), card(0x5E, handles=2)
    database.write(reports.store_report, HostReport(HOST, 'next', cards))
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


def test_hold_of_lost_job_raises(database: Database, payload: ModePayload) -> None:
    job = lease(database, payload)
    stolen = update(JobRow).values(owner=_OTHER.name, lease=job.lease + 1)
    database.write(lambda session: session.execute(stolen))
    with pytest.raises(JobLost):
        database.write(modes.hold_device, job, payload)
    assert not any(list_preparing(database))


def test_foreign_handle_refuses_change(
    database: Database, payload: ModePayload
) -> None:
    used = update(AttachHandle).values(in_use=True)
    database.write(lambda session: session.execute(used))
    with pytest.raises(ModeRefused, match='a program of its host uses it'):
        database.write(modes.add_change, payload, None)


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
    removed = update(Device).values(uuid='00000000-0000-4000-8000-000000000000')
    database.write(
        lambda session: session.execute(
            removed.where(Device.uuid == payload.device_uuid)
        )
    )
    database.write(modes.end_change, job, 'It is gone.')
    change = database.read(modes.find_change, payload.device_uuid)
    assert change is not None
    assert change.state == 'failed'
    with pytest.raises(DeviceNotFound):
        database.read(modes.find_device, payload.device_uuid)
