# SPDX-License-Identifier: Apache-2.0
"""Changes of the configuration of devices: start, hold, progress and end.

A change holds its devices from the first playbook to the end. Each write is fenced by
the lease of the job.

A function that changes a job raises ``JobLost`` if this process has lost its lease.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NoReturn
from uuid import uuid4

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change, check_generation, raise_generation
from cyborg_lite.db.core.records import AnyRow, Record
from cyborg_lite.db.core.tables import Device, now
from cyborg_lite.db.core.tables import Reconfiguration as RecordRow
from cyborg_lite.db.devices import hold
from cyborg_lite.db.devices.hold import APPLIED, FACTS, HELD
from cyborg_lite.db.inventory.handles import list_owners
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.errors.devices import DeviceNotFound, ReconfigurationRefused
from cyborg_lite.model.devices.reconfiguration import (
    DeviceFacts,
    Phase,
    Reconfiguration,
    ReconfigurationState,
)
from cyborg_lite.model.jobs import Job, ReconfigurePayload
from cyborg_lite.model.operations import NewOperation, OperationKind

MAX_LOG_BYTES: Final = 48_000
"""Length of the stored log in UTF-8; the first lines are dropped."""
_DROPPED: Final = '(earlier lines are dropped)'
_MAX_REASON: Final = 1024  # characters
_MAX_SHOWN: Final = 20  # changes of one device

Selects = Callable[[DeviceFacts], bool]

_RECORD: Final = Record(
    Reconfiguration, RecordRow, phase=func.nullif(RecordRow.phase, '')
)


@dataclass(frozen=True, slots=True)
class NewReconfiguration:
    """A change that a caller requests."""

    device_uuid: str
    hardware_set: str
    settings: dict[str, object]  # JSON values
    actor: str
    limit_ms: int  # until the change counts as failed


@dataclass(frozen=True, slots=True)
class ReconfigurationWork:
    """A change that has begun, with what its playbooks need."""

    record: Reconfiguration
    device: DeviceFacts
    provider_uuids: tuple[str, ...]  # of all devices that it holds
    is_applied: bool = False  # True: only the report of the host is missing


def list_changes(session: Session, device_uuid: str) -> tuple[Reconfiguration, ...]:
    """Return the last changes of a device, the latest first."""
    statement = (
        _RECORD.select()
        .join(Device, Device.id == RecordRow.device_id)
        .where(Device.uuid == device_uuid)
        .order_by(RecordRow.id.desc())
        .limit(_MAX_SHOWN)
    )
    return _RECORD.list(session, statement)


def find_change(session: Session, record_uuid: str) -> Reconfiguration | None:
    """Return a change, or None if its device is removed."""
    return _RECORD.find(session, RecordRow.uuid == record_uuid)


def list_users(
    session: Session, device: DeviceFacts, selects: Selects
) -> tuple[str, ...]:
    """Return the ARQs that use a device or another device that a change affects."""
    ids = _list_affected(session, device, selects)
    owners = list_owners(session, Device.id, Device.id.in_(ids))
    return tuple(chain.from_iterable(owners.values()))


def add_change(
    session: Session,
    new: NewReconfiguration,
    selects: Selects,
    operation: NewOperation | None = None,
    generation: int | None = None,
) -> str:
    """Store a change and its job; return the uuid of the change.

    :param selects: returns True for the other devices of the host that the change
        affects
    :param operation: that ends with the job
    :param generation: that the device must have; None: any
    :raises DeviceNotFound: no device has the uuid
    :raises GenerationConflict: the device has another generation
    :raises ReconfigurationRefused: a device is in use, or is being changed
    """
    device_id, device = hold.lock_device(session, new.device_uuid)
    check_generation(session, Device, device.uuid, generation)
    raise_generation(session, Device, device.uuid)
    if queue.has_keyed_job(session, OperationKind.CONFIGURATION, device.uuid):
        reason = 'its configuration is being changed already.'
        _refuse(device.uuid, new.hardware_set, reason)
    reason = hold.find_obstacle(session, _list_affected(session, device, selects))
    if reason:
        _refuse(device.uuid, new.hardware_set, reason)
    uuid = str(uuid4())
    values: dict[str, object] = {
        'uuid': uuid,
        'device_id': device_id,
        'hardware_set': new.hardware_set,
        'settings': new.settings,
        'held_ids': [],
        'state': ReconfigurationState.WAITING,
        'actor': new.actor,
    }
    change(session, insert(RecordRow), values)
    payload = ReconfigurePayload(device.uuid, uuid)
    hold.add_job(session, payload, device.hostname, new.limit_ms, operation)
    return uuid


def begin_change(
    session: Session, job: Job, payload: ReconfigurePayload, selects: Selects
) -> ReconfigurationWork:
    """Hold the devices of a change, unless an earlier attempt did.

    :raises DeviceNotFound: the device is removed
    :raises ReconfigurationRefused: a device is in use
    """
    # In the order of their ids, so that two changes of a host cannot block each other.
    device = hold.find_device(session, payload.device_uuid)
    ids = _list_affected(session, device, selects)
    session.execute(
        select(Device.id)
        .where(Device.id.in_(ids))
        .order_by(Device.id)
        .with_for_update()
    )
    step = hold.read_step(session, job)
    statement = _RECORD.select(RecordRow.held_ids)
    record = session.execute(
        statement.where(RecordRow.uuid == payload.record_uuid)
    ).one_or_none()
    if record is None:  # it was deleted with its device
        raise DeviceNotFound(uuid=payload.record_uuid)
    if step not in (HELD, APPLIED):
        _hold(session, job, record, ids)
        queue.add_job(session, queue.placement_sync_job(device.hostname))
    device_ids = record.held_ids if step in (HELD, APPLIED) else ids
    return ReconfigurationWork(
        _RECORD.read(record),
        device,
        hold.list_providers(session, device_ids),
        is_applied=step == APPLIED,
    )


def record_progress(
    session: Session, job: Job, record_uuid: str, phase: Phase, lines: Sequence[str]
) -> None:
    """Append lines to the log of a change, one per task that has ended."""
    queue.record_job_step(session, job, HELD)
    operations.record_step(session, job.operations, phase, 50)
    if lines:
        log = session.scalar(select(RecordRow.log).where(RecordRow.uuid == record_uuid))
        values: dict[str, object] = {
            'phase': phase,
            'tasks': RecordRow.tasks + len(lines),
            'log': append_log(log or '', lines),
        }
        _update(session, record_uuid, **values)


def record_applied(session: Session, job: Job) -> None:
    """Store that the playbooks of a change have succeeded."""
    queue.record_job_step(session, job, APPLIED)
    operations.record_step(session, job.operations, APPLIED, 90)


def end_change(
    session: Session, job: Job, failure: str = '', *, is_unchanged: bool = False
) -> None:
    """End the hold of the devices, the change and its job.

    :param failure: why the configuration did not change; empty: it did
    :param is_unchanged: True: no playbook has started, so the devices are offered
        again. False: with a failure they stay in maintenance.
    """
    payload = queue.read_payload(ReconfigurePayload, job.payload)
    queue.finish_job(session, job, failure or None)
    statement = _RECORD.select(RecordRow.held_ids, RecordRow.device_id)
    record = session.execute(
        statement.where(RecordRow.uuid == payload.record_uuid)
    ).one_or_none()
    if record is None:
        return  # the device was removed with its host
    if record.held_ids:
        trouble = '' if is_unchanged or not failure else f'Configuration: {failure}'
        reason = _hold_reason(record.hardware_set)
        hold.end_hold(session, record.held_ids, reason, trouble)
        hostname = select(Device.hostname).where(Device.id == record.device_id)
        queue.add_job(session, queue.placement_sync_job(str(session.scalar(hostname))))
    state = ReconfigurationState.FAILED if failure else ReconfigurationState.SUCCEEDED
    values = {
        'state': state,
        'reason': failure[:_MAX_REASON],
        'finished_at': now(),
        'held_ids': [],
    }
    _update(session, payload.record_uuid, **values)


def append_log(log: str, lines: Sequence[str]) -> str:
    """Return a log with further lines, at most ``MAX_LOG_BYTES`` long."""
    text = '\n'.join(filter(None, (log, *lines)))
    content = text.encode()
    if len(content) <= MAX_LOG_BYTES:
        return text
    tail = content[-(MAX_LOG_BYTES - len(_DROPPED) - 1) :].decode(errors='ignore')
    return f'{_DROPPED}\n{tail.partition(chr(10))[2]}'


def _hold(session: Session, job: Job, record: AnyRow, ids: Collection[int]) -> None:
    reason = hold.find_obstacle(session, ids)
    if reason:
        uuid = queue.read_payload(ReconfigurePayload, job.payload).device_uuid
        _refuse(uuid, record.hardware_set, reason)
    hold.hold_devices(session, ids, _hold_reason(record.hardware_set))
    values = {'state': ReconfigurationState.RUNNING, 'held_ids': list(ids)}
    _update(session, record.uuid, **values)
    queue.record_job_step(session, job, HELD)


def _hold_reason(name: str) -> str:
    return f'The device is being configured by hardware set {name}.'


def _list_affected(
    session: Session, device: DeviceFacts, selects: Selects
) -> list[int]:
    rows = session.execute(
        FACTS.select().where(Device.hostname == device.hostname).order_by(Device.id)
    )
    return [
        row.row_id
        for row in rows
        if row.uuid == device.uuid or selects(FACTS.read(row))
    ]


def _update(session: Session, uuid: str, **values: object) -> None:
    statement = update(RecordRow).where(RecordRow.uuid == uuid)
    change(session, statement.values(**values))


def _refuse(uuid: str, name: str, reason: str) -> NoReturn:
    raise ReconfigurationRefused(uuid=uuid, name=name, reason=reason)
