# SPDX-License-Identifier: Apache-2.0
"""Changes of the mode of a device: what stands in their way, and the hold during one.

While the mode of a device changes, no ARQ can claim its handles, and the device is in
maintenance, so that Placement offers nothing of it. A device that the operator has put
into maintenance stays there.

A function that changes a job raises ``JobLost`` if this process has lost its lease.
A function that takes the uuid of a device raises ``DeviceNotFound`` if there is none,
and ``GenerationConflict`` if the device has another generation than the given one.
"""

from typing import Final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change, check_generation, raise_generation
from cyborg_lite.db.core.clock import read_now_ms
from cyborg_lite.db.core.tables import Device
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.devices import hold
from cyborg_lite.db.devices.hold import HELD
from cyborg_lite.db.inventory import device_events, reports
from cyborg_lite.db.inventory.handles import list_owners
from cyborg_lite.db.jobs import administration, operations, queue
from cyborg_lite.errors.devices import DeviceNotFound, ModeRefused
from cyborg_lite.model.devices.events import DeviceEventKind
from cyborg_lite.model.devices.modes import ModeChange, list_inventory
from cyborg_lite.model.devices.reconfiguration import DeviceFacts
from cyborg_lite.model.inventory.host_report import Device as ReportedDevice
from cyborg_lite.model.jobs import Job, JobState, ModePayload
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.operations import NewOperation, OperationKind

_LIMIT_MS: Final = 900_000  # until a change counts as failed


def list_users(session: Session, uuid: str) -> tuple[str, ...]:
    """Return the ARQs that use a device."""
    owners = list_owners(session, Device.uuid, Device.uuid == uuid)
    return tuple(owners.get(uuid, ()))


def find_change(session: Session, uuid: str) -> ModeChange | None:
    """Return the last change of a device that has not succeeded, if any."""
    last = None
    for job in administration.list_jobs(session, [OperationKind.MODE]):
        payload = queue.read_payload(ModePayload, job.payload)
        if payload.device_uuid == uuid:
            last = ModeChange(payload.mode, job.state.value, job.last_error)
    return last


def add_change(
    session: Session,
    payload: ModePayload,
    operation: NewOperation | None = None,
    generation: int | None = None,
) -> None:
    """Add the job that changes the mode of a device; delete its failed jobs.

    :param operation: that ends with the job
    :raises ModeRefused: the device is in use, or its mode is being changed
    """
    number, device = hold.lock_device(session, payload.device_uuid)
    check_generation(session, Device, device.uuid, generation)
    raise_generation(session, Device, device.uuid)
    if queue.has_keyed_job(session, OperationKind.MODE, device.uuid):
        reason = 'its mode is being changed already.'
        raise ModeRefused(uuid=device.uuid, mode=payload.mode, reason=reason)
    _check_unused(session, number, payload)
    for job in administration.list_jobs(
        session, [OperationKind.MODE], [JobState.FAILED]
    ):
        if queue.read_payload(ModePayload, job.payload).device_uuid == device.uuid:
            change(session, delete(JobRow).where(JobRow.uuid == job.uuid))
    hold.add_job(session, payload, device.hostname, _LIMIT_MS, operation)


def hold_device(
    session: Session, job: Job, payload: ModePayload
) -> tuple[DeviceFacts, tuple[str, ...]]:
    """Hold a device for a job, unless the job holds it, and record the step.

    :returns: the device, and the uuids of its providers
    :raises ModeRefused: the device is in use
    """
    number, device = hold.lock_device(session, payload.device_uuid)
    if not hold.is_held(session, job):
        _check_unused(session, number, payload)
        hold.hold_devices(session, [number], _hold_reason(payload.mode))
        queue.record_job_step(session, job, HELD)
        operations.record_step(session, job.operations, HELD, 10)
        queue.add_job(session, queue.placement_sync_job(device.hostname))
    return device, hold.list_providers(session, [number])


def read_order_time(session: Session, job: Job) -> int:
    """Return the time of an order to change the mode, in milliseconds.

    The order of a later change has a later time, because this job holds the device.
    """
    queue.record_job_step(session, job, HELD)
    return read_now_ms(session)


def record_device(
    session: Session, hostname: str, card: ReportedDevice, job: Job
) -> None:
    """Store a device as its host reports it after the change."""
    reports.store_card(session, hostname, card)
    inventory = [
        {'resource_class': item.resource_class, 'total': item.total}
        for item in list_inventory(card.root)
    ]
    operations.record_result(session, job.operations, {'inventory': inventory})
    queue.add_job(session, queue.placement_sync_job(hostname))


def end_change(
    session: Session, job: Job, failure: str = '', *, is_known: bool = True
) -> None:
    """End the hold of a device, and its job.

    :param failure: why the mode did not change; empty: it did
    :param is_known: False: the device may be between two modes. It stays in
        maintenance with the failure as the reason.
    """
    payload = queue.read_payload(ModePayload, job.payload)
    kinds = DeviceEventKind.MODE_CHANGED, DeviceEventKind.MODE_CHANGE_FAILED
    details = {'value': payload.mode, 'reason': failure[:REASON_MAX_LENGTH]}
    is_device = Device.uuid == payload.device_uuid
    device_events.add_events(session, is_device, kinds[bool(failure)], **details)
    if hold.is_held(session, job):
        try:
            number, device = hold.lock_device(session, payload.device_uuid)
        except DeviceNotFound:
            pass  # it was removed with its host
        else:
            text = '' if is_known else f'Its mode is unknown: {failure}'
            hold.end_hold(session, [number], _hold_reason(payload.mode), text)
            queue.add_job(session, queue.placement_sync_job(device.hostname))
    if not failure:
        queue.finish_job(session, job)
        return
    queue.record_job_step(session, job, '')
    queue.fail_job(session, job, failure)


def _check_unused(session: Session, device_id: int, payload: ModePayload) -> None:
    """Check that all handles of a device are free."""
    reason = hold.find_obstacle(session, [device_id])
    if reason:
        uuid, mode = payload.device_uuid, payload.mode
        raise ModeRefused(uuid=uuid, mode=mode, reason=reason)


def _hold_reason(mode: str) -> str:
    return f'The mode of the device is being changed to {mode}.'
