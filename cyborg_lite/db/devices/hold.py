# SPDX-License-Identifier: Apache-2.0
"""The hold of unused devices while a job changes them.

No ARQ can claim a handle of a held device. The device is in maintenance, so that
Placement offers none of its units. A device that the operator has put into maintenance
stays in maintenance.

A function that takes the uuid of a device raises ``DeviceNotFound`` if there is none.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import chain
from typing import Final

from sqlalchemy import ColumnElement, and_, func, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import (
    AttachHandle,
    Deployable,
    Device,
    Reconfiguration,
    now,
)
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.inventory.handles import FREE, list_owners
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.reconfiguration import (
    DeviceFacts,
    ReconfigurationState,
)
from cyborg_lite.model.jobs import Job, ModePayload, ReconfigurePayload
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.operations import NewOperation, OperationKind

HELD: Final = 'held'
"""Step of a job after its devices are held."""

APPLIED: Final = 'applied'
"""Step of a job whose playbooks have succeeded. Its devices are still held."""

FACTS: Final = Record(DeviceFacts, Device, address=Device.control_address)

_MAX_NAMED: Final = 10  # ARQs


def find_device(session: Session, uuid: str) -> DeviceFacts:
    """Return a device."""
    device = FACTS.find(session, Device.uuid == uuid)
    if device is None:
        raise DeviceNotFound(uuid=uuid)
    return device


def lock_device(session: Session, uuid: str) -> tuple[int, DeviceFacts]:
    """Lock a device until the transaction ends; return its id, and the device."""
    locked = FACTS.select().where(Device.uuid == uuid).with_for_update()
    row = session.execute(locked).one_or_none()
    if row is None:
        raise DeviceNotFound(uuid=uuid)
    return row.row_id, FACTS.read(row)


def find_obstacle(session: Session, ids: Collection[int]) -> str:
    """Return what uses or changes devices, as one sentence; empty: nothing.

    The handles are locked until the transaction ends. So no bind and no load begins
    between the check and the hold.
    """
    handles = select(AttachHandle.id).where(_of_devices(ids))
    session.execute(handles.order_by(AttachHandle.id).with_for_update())
    if is_changing(session, ids):
        return 'its mode or its configuration is being changed.'
    busy = and_(_of_devices(ids), AttachHandle.missing.is_(False), ~FREE)
    owners = list_owners(session, Device.id, busy)
    arqs = list(chain.from_iterable(owners.values()))
    if arqs:
        return f'ARQs use it: {", ".join(arqs[:_MAX_NAMED])}.'
    if session.scalar(select(func.count()).select_from(AttachHandle).where(busy)):
        return 'a program of its host uses it, or a job prepares it.'
    return ''


def is_changing(session: Session, ids: Collection[int]) -> bool:
    """Check whether a job holds one of the devices.

    A host may report new handles during the change. They are free, and the hold began
    before them.
    """
    return not list_changing(session).isdisjoint(ids)


def list_changing(session: Session) -> set[int]:
    """Return the ids of the devices that jobs hold."""
    mode_jobs = (
        select(Device.id)
        .join(JobRow, Device.uuid == JobRow.key)
        .where(JobRow.kind == OperationKind.MODE, JobRow.step == HELD)
    )
    running = Reconfiguration.state == ReconfigurationState.RUNNING
    selections = session.scalars(select(Reconfiguration.held_ids).where(running))
    return set(session.scalars(mode_jobs)).union(*selections)


def add_job(
    session: Session,
    payload: ModePayload | ReconfigurePayload,
    host: str,
    limit_ms: int,
    operation: NewOperation | None,
) -> None:
    """Add the job that changes a device of a host.

    :param limit_ms: until the change counts as failed
    :param operation: that ends with the job; None: there is none
    """
    request_id = None if operation is None else operation.request_id
    new_job = queue.build_job(payload, limit_ms=limit_ms, request_id=request_id)
    queue.add_job(session, replace(new_job, host=host, operation=operation))


def read_step(session: Session, job: Job) -> str:
    """Return the stored step of a job."""
    step = session.scalar(select(JobRow.step).where(JobRow.uuid == job.uuid))
    return step or ''


def is_held(session: Session, job: Job) -> bool:
    """Return True if an attempt at a job, by any worker, has held its devices."""
    return read_step(session, job) in (HELD, APPLIED)


def list_providers(session: Session, ids: Collection[int]) -> tuple[str, ...]:
    """Return the uuids of the providers of devices."""
    providers = select(Deployable.rp_uuid).where(
        Deployable.device_id.in_(ids), Deployable.rp_uuid.is_not(None)
    )
    return tuple(map(str, session.scalars(providers)))


def hold_devices(session: Session, ids: Collection[int], reason: str) -> None:
    """Withhold the free handles of devices, and put enabled ones into maintenance."""
    handles = update(AttachHandle).where(_of_devices(ids), FREE)
    change(session, handles.values(preparing=True))
    are_enabled = Device.id.in_(ids), Device.status == DeviceStatus.ENABLED
    values = {
        'status': DeviceStatus.MAINTAINING,
        'status_reason': reason[:REASON_MAX_LENGTH],
        'updated_at': now(),
    }
    change(session, update(Device).where(*are_enabled).values(**values))


def end_hold(
    session: Session, ids: Collection[int], reason: str, trouble: str = ''
) -> None:
    """Offer devices again that ``hold_devices`` has held for a reason.

    :param trouble: why they stay in maintenance; empty: they do not
    """
    of_hold = _of_devices(ids), AttachHandle.arq_uuid.is_(None)
    change(session, update(AttachHandle).where(*of_hold).values(preparing=False))
    of_reason = Device.status_reason == reason[:REASON_MAX_LENGTH]
    values = {
        'status': DeviceStatus.MAINTAINING if trouble else DeviceStatus.ENABLED,
        'status_reason': trouble[:REASON_MAX_LENGTH],
        'updated_at': now(),
    }
    change(
        session, update(Device).where(Device.id.in_(ids), of_reason).values(**values)
    )


def _of_devices(ids: Collection[int]) -> ColumnElement[bool]:
    deployables = select(Deployable.id).where(Deployable.device_id.in_(ids))
    return AttachHandle.deployable_id.in_(deployables)
