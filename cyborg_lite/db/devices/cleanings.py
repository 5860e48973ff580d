# SPDX-License-Identifier: Apache-2.0
"""Transactions that clean units: begin, progress, end, and decisions of operators.

A unit that is not clean has no ARQ, so its generation does not change. Each result is
stored for this generation and by the process that holds the lease of the job. The row
of a cleaning run numbers the orders for the agent: a later cleaning run has a higher
number.

A function that changes a job raises ``JobLost`` if this process has lost its lease.
A function that takes the uuid of a device raises ``DeviceNotFound`` if there is none.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    Text,
    and_,
    cast,
    exists,
    func,
    insert,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.incarnations import INCARNATION
from cyborg_lite.db.core.query import Collection, list_page
from cyborg_lite.db.core.records import AnyRow, From, Record
from cyborg_lite.db.core.tables import (
    AttachHandle,
    Cleaning,
    Deployable,
    Device,
    DeviceProfile,
    LoadedRegion,
    Service,
    now,
)
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.devices import hold
from cyborg_lite.db.inventory import device_events, reports
from cyborg_lite.db.inventory.handles import HANDLE_FIELDS
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.errors.devices import CleaningRefused, DeviceNotFound
from cyborg_lite.errors.drivers import DeviceBusy
from cyborg_lite.model.devices.cleaning import (
    CONDUCTOR_ACTOR,
    FREE_STATES,
    LOGIC_STEP,
    OPERATOR_STATES,
    CleaningRecord,
    CleaningState,
    CleanOrder,
    CleanProgress,
    CleanState,
    CleanStepResult,
    CleanWork,
    DeviceCleanings,
    UncleanUnit,
    UnitSelection,
    UnitState,
    list_completed,
    merge_results,
)
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.devices.events import DeviceEventKind
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.model.jobs import CleanPayload, Job
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.operations import NewOperation, OperationKind
from cyborg_lite.model.profiles.device_profiles import BITSTREAM_KEYS
from cyborg_lite.model.queries import LATEST_FIRST, Page, Query

_ID_BITS: Final = 32  # of the number of an order
_MAX_STEP_TEXT: Final = 64  # characters, as the column of the job
_MAX_NAMED: Final = 10  # ARQs
_LOGIC_STAYS: Final = (
    'The region contains the logic of its last user, and no device profile names a '
    'bitstream to replace it. Set blank_bitstream of the driver, or accept the unit.'
)
_ANY_BITSTREAM: Final = exists().where(
    or_(
        *(
            cast(column, Text).contains(key, autoescape=True)
            for column in (DeviceProfile.groups, DeviceProfile.alternatives)
            for key in sorted(BITSTREAM_KEYS)
        )
    )
)
"""SQL that is true if a device profile names a bitstream."""
_ACCEPTED: Final = 'Declared clean by an operator; no step has run.'

_HANDLE: Final = Record(AllocatedHandle, AttachHandle, Device, **HANDLE_FIELDS)
_UNIT: Final = Record(
    UnitState,
    AttachHandle,
    unit=AttachHandle.key,
    state=AttachHandle.clean_state,
    policy=AttachHandle.cleaning,
    reason=AttachHandle.clean_reason,
)
_UNITS: Final = (
    _HANDLE.select(
        AttachHandle.clean_state,
        AttachHandle.clean_reason,
        Deployable.rp_uuid,
        Device.id.label('device_id'),
    )
    .join(Deployable, AttachHandle.deployable_id == Deployable.id)
    .join(Device, Deployable.device_id == Device.id)
    .outerjoin(Service, Service.is_agent_of(Device.hostname))
    .order_by(AttachHandle.id)
)
_DIRTY: Final = and_(
    AttachHandle.arq_uuid.is_(None), AttachHandle.clean_state == CleanState.DIRTY
)
_RESETTABLE: Final = and_(
    AttachHandle.arq_uuid.is_(None),
    AttachHandle.clean_state.in_((*FREE_STATES, *OPERATOR_STATES)),
    AttachHandle.cleaning != CleaningPolicy.NEVER,
    AttachHandle.in_use.is_(False),
    AttachHandle.missing.is_(False),
    AttachHandle.preparing.is_(False),
)


# --- cleaning jobs ---


def begin_cleaning(session: Session, job: Job) -> CleanWork | None:
    """Return the cleaning run that a job works on; store it at the first attempt.

    :returns: None if the unit need not be cleaned any more
    :raises DeviceBusy: a job changes the device; the call may be repeated
    """
    payload = queue.read_payload(CleanPayload, job.payload)
    queue.record_job_step(session, job, job.step)
    row = session.execute(
        _UNITS.where(AttachHandle.uuid == payload.handle_uuid, _DIRTY)
    ).one_or_none()
    if row is None:
        return None
    record = session.execute(_select_running(row)).one_or_none()
    if record is None:
        # The host has reported the unit during the change. An unclean unit that it had
        # reported before would have prevented the change.
        if not job.expired and hold.is_changing(session, [row.device_id]):
            reason = 'its mode or its configuration is being changed.'
            raise DeviceBusy(address=row.control_address, reason=reason)
        values = {'state': CleaningState.RUNNING, 'steps': [], 'actor': payload.actor}
        _insert_record(session, row, values)
        _add_event(session, row.device_id, row.key, DeviceEventKind.CLEANING_STARTED)
        record = session.execute(_select_running(row)).one()
    stored = _parse_steps(record.steps)
    # A restored database uses ids again, for which agents remember results.
    number = record.incarnation << _ID_BITS | record.id
    order = CleanOrder(number, _HANDLE.read(row), list_completed(stored))
    return CleanWork(order, record.uuid, stored, row.rp_uuid)


# Any, here and below: the columns of _UNITS.
def _select_running(row: AnyRow) -> Select[*tuple[Any, ...]]:
    """Return a SELECT of the last cleaning run of a unit, if it has not ended."""
    return (
        select(Cleaning.id, Cleaning.uuid, Cleaning.steps, INCARNATION)
        .where(
            Cleaning.handle_uuid == row.uuid,
            Cleaning.generation == row.generation,
            Cleaning.state == CleaningState.RUNNING,
        )
        .order_by(Cleaning.id.desc())
        .limit(1)
    )


def _insert_record(session: Session, row: AnyRow, values: Mapping[str, Any]) -> None:
    """Insert a cleaning run of a unit.

    :param values: further columns of the record
    """
    of_unit = {
        'uuid': str(uuid4()),
        'device_id': row.device_id,
        'handle_uuid': row.uuid,
        'unit': row.key,
        'generation': row.generation,
    }
    change(session, insert(Cleaning), {**of_unit, **values})


def record_progress(
    session: Session, job: Job, work: CleanWork, progress: CleanProgress, delay_ms: int
) -> None:
    """Store the steps so far; the job runs again after a delay."""
    values = {'reason': progress.reason[:REASON_MAX_LENGTH]}
    _store_steps(session, job, work, progress, values)
    step = (progress.text or job.step)[:_MAX_STEP_TEXT]
    queue.pause_job(session, job, delay_ms, step, progress.reason)


def record_clean(
    session: Session, job: Job, work: CleanWork, progress: CleanProgress
) -> None:
    """Store that all steps succeeded, and make the unit available.

    A region with the logic of its last user is withheld if no profile can replace it.
    """
    values = {'state': CleaningState.SUCCEEDED, 'finished_at': now(), 'reason': ''}
    _store_steps(session, job, work, progress, values)
    handle = work.order.handle
    keeps_logic = any(step.name == LOGIC_STEP for step in progress.steps)
    if keeps_logic and not session.scalar(select(_ANY_BITSTREAM)):
        # Placement must not offer a unit that no ARQ can claim.
        record_clean_failure(session, job, work, _LOGIC_STAYS, progress)
        return
    state = CleanState.NEEDS_BITSTREAM if keeps_logic else CleanState.CLEAN
    _set_state(session, _is_same(handle), state)
    # The content of the region is unknown, so that the next bind loads it.
    of_unit = AttachHandle.uuid == handle.uuid
    region = session.scalar(select(AttachHandle.deployable_id).where(of_unit))
    content = update(LoadedRegion).where(LoadedRegion.deployable_id == region)
    change(session, content.values(bitstream=null()))
    deployable = update(Deployable).where(Deployable.id == region)
    change(session, deployable.values(bitstream_id=None))
    device = _device_of(work)
    _add_event(session, device, handle.key, DeviceEventKind.CLEANED)
    _follow(session, handle)
    queue.finish_job(session, job)


def record_clean_failure(
    session: Session,
    job: Job,
    work: CleanWork,
    reason: str,
    progress: CleanProgress | None = None,
) -> None:
    """Withhold a unit until an operator decides, and finish the job.

    :param progress: None: the host has not answered
    """
    reason = reason[:REASON_MAX_LENGTH]
    values = {'state': CleaningState.FAILED, 'finished_at': now(), 'reason': reason}
    _store_steps(session, job, work, progress, values)
    handle = work.order.handle
    _set_state(session, _is_same(handle), CleanState.FAILED, reason)
    device, kind = _device_of(work), DeviceEventKind.CLEANING_FAILED
    _add_event(session, device, handle.key, kind, reason)
    _follow(session, handle)
    queue.finish_job(session, job, reason)


# Any: an id, or SQL for it.
def _add_event(
    session: Session, device_id: Any, unit: str, kind: DeviceEventKind, reason: str = ''
) -> None:
    is_device = Device.id == device_id
    device_events.add_events(session, is_device, kind, unit=unit, reason=reason)


def _device_of(work: CleanWork) -> ScalarSelect[int]:
    record = select(Cleaning.device_id).where(Cleaning.uuid == work.record_uuid)
    return record.scalar_subquery()


def _is_same(handle: AllocatedHandle) -> ColumnElement[bool]:
    """Return SQL that is true for the unit while its state has not changed."""
    is_handle = AttachHandle.uuid == handle.uuid
    return and_(is_handle, AttachHandle.generation == handle.generation, _DIRTY)


def _set_state(
    session: Session, units: ColumnElement[bool], state: CleanState, reason: str = ''
) -> None:
    values = {'clean_state': state, 'clean_reason': reason}
    change(session, update(AttachHandle).where(units).values(**values))


def _follow(session: Session, handle: AllocatedHandle) -> None:
    """Have Placement follow the state of a unit; delete a clean unit that is gone."""
    if handle.missing:
        reports.delete_missing_handles(session, handle.hostname)
    queue.add_job(session, queue.placement_sync_job(handle.hostname))


def _store_steps(
    session: Session,
    job: Job,
    work: CleanWork,
    progress: CleanProgress | None,
    values: Mapping[str, Any],
) -> None:
    """Store the results of steps in the record of the run, and in its operations.

    :param values: further columns of the record
    """
    columns = dict(values)
    if progress is not None:
        results = merge_results(work.stored, progress.results)
        columns['steps'] = codec.dump(
            tuple(replace(r, error=r.error[:REASON_MAX_LENGTH]) for r in results)
        )
    if progress is not None and progress.steps:
        columns['step_count'] = len(progress.steps)
        earlier_steps = {item.name for item in work.stored}
        for number, item in enumerate(results):
            if item.name not in earlier_steps:
                percent = 100 * number // len(progress.steps)
                operations.record_step(session, job.operations, item.name, percent)
    record = Cleaning.uuid == work.record_uuid
    change(session, update(Cleaning).where(record).values(**columns))


# Any: JSON that this module has written.
def _parse_steps(stored: Any) -> tuple[CleanStepResult, ...]:
    return codec.load(tuple[CleanStepResult, ...], stored)


# --- operators ---

_RECORD: Final = Record(
    CleaningRecord, Cleaning, steps=From(_parse_steps, Cleaning.steps)
)


_CLEANINGS: Final = Collection(Cleaning, filters={})


def list_cleanings(
    session: Session, device_uuid: str, query: Query = LATEST_FIRST
) -> DeviceCleanings:
    """Return the units of a device and a page of its cleaning runs."""
    device_id = session.scalar(select(Device.id).where(Device.uuid == device_uuid))
    if device_id is None:
        raise DeviceNotFound(uuid=device_uuid)
    units = session.execute(
        _UNIT.select()
        .join(Deployable, AttachHandle.deployable_id == Deployable.id)
        .where(Deployable.device_id == device_id)
        .order_by(AttachHandle.id)
    )
    collection = replace(_CLEANINGS, visible=Cleaning.device_id == device_id)
    page = list_page(session, _RECORD.select(), query, collection, _RECORD.read)
    cursor = page.cursor if isinstance(page, Page) else None
    return DeviceCleanings(tuple(map(_UNIT.read, units)), page, cursor)


def retry_cleaning(
    session: Session,
    selection: UnitSelection,
    actor: str,
    operation: NewOperation | None = None,
) -> int:
    """Clean units again that wait for an operator; return their number.

    A unit for one use is cleaned only by this call.

    :param actor: name of the operator
    :param operation: that ends with the last cleaning run
    :raises CleaningRefused: no selected unit waits for an operator
    """
    rows = _lock_waiting(session, selection, 'clean')
    _start_jobs(session, rows, actor, operation)
    return len(rows)


def reset_units(
    session: Session,
    selection: UnitSelection,
    actor: str,
    operation: NewOperation | None = None,
) -> int:
    """Clean units that no ARQ has; return their number.

    :raises CleaningRefused: no selected unit is free and has cleaning steps, or an ARQ
        has a unit and the selection has no name
    """
    uuid, selected = selection.device_uuid, _select_units(session, selection)
    rows = session.execute(selected.with_for_update(of=AttachHandle)).all()
    users = [row.arq_uuid for row in rows if row.arq_uuid]
    if users and not selection.name:
        reason = f'ARQs use it: {", ".join(users[:_MAX_NAMED])}.'
        raise CleaningRefused(uuid=uuid, action='reset', reason=reason)
    free = session.execute(selected.where(_RESETTABLE)).all()
    if not free:
        reason = 'none is free and has cleaning steps.'
        raise CleaningRefused(uuid=uuid, action='reset', reason=reason)
    _start_jobs(session, free, actor, operation)
    return len(free)


def request_reset(session: Session, is_device: ColumnElement[bool]) -> bool:
    """Reset a device that a health rule withholds, unless an ARQ has it.

    The cleaning run after the release resets a device in use.

    :returns: False: no unit of the device is the device itself and has cleaning steps
    """
    is_whole = and_(
        AttachHandle.key == Device.control_address,
        AttachHandle.cleaning != CleaningPolicy.NEVER,
    )
    units = _UNITS.where(is_device, is_whole)
    rows = session.execute(units.with_for_update(of=AttachHandle)).all()
    # Only an operator offers a unit again that waits for one.
    is_clean = AttachHandle.clean_state == CleanState.CLEAN
    free = session.execute(units.where(_RESETTABLE, is_clean)).all()
    _start_jobs(session, free, CONDUCTOR_ACTOR, None)
    return bool(rows)


def _start_jobs(
    session: Session,
    rows: Sequence[AnyRow],
    actor: str,
    operation: NewOperation | None,
) -> None:
    for row in rows:
        job = queue.clean_job(row.uuid, row.hostname, actor)
        queue.add_job(session, replace(job, operation=operation))
    _set_state(session, _is_any(rows), CleanState.DIRTY)
    queue.sync_hosts(session, {row.hostname for row in rows})


def accept_units(session: Session, selection: UnitSelection, actor: str) -> int:
    """Declare units clean that wait for an operator; return their number.

    :param actor: name of the operator, which is recorded
    :raises CleaningRefused: no selected unit waits for an operator
    """
    rows = _lock_waiting(session, selection, 'accept')
    moment = now()
    for row in rows:
        record = {
            'state': CleaningState.ACCEPTED,
            'steps': [],
            'actor': actor,
            'reason': _ACCEPTED,
            'started_at': moment,
            'finished_at': moment,
        }
        _insert_record(session, row, record)
        kind, reason = DeviceEventKind.UNIT_ACCEPTED, f'Accepted by {actor}.'
        _add_event(session, row.device_id, row.key, kind, reason[:REASON_MAX_LENGTH])
    _set_state(session, _is_any(rows), CleanState.CLEAN)
    for handle in map(_HANDLE.read, rows):
        _follow(session, handle)
    return len(rows)


def _lock_waiting(
    session: Session, selection: UnitSelection, action: str
) -> Sequence[AnyRow]:
    uuid, selected = selection.device_uuid, _select_units(session, selection)
    states = (*OPERATOR_STATES, CleanState.NEEDS_BITSTREAM)
    waiting = selected.where(AttachHandle.clean_state.in_(states))
    rows = session.execute(waiting.with_for_update(of=AttachHandle)).all()
    if not rows:
        units = [f'{row.key} is {row.clean_state}' for row in session.execute(selected)]
        reason = f'{", ".join(units)}.' if units else 'it has no such unit.'
        raise CleaningRefused(uuid=uuid, action=action, reason=reason)
    return rows


# Any: the columns of _UNITS.
def _select_units(
    session: Session, selection: UnitSelection
) -> Select[*tuple[Any, ...]]:
    uuid = selection.device_uuid
    if session.scalar(select(Device.id).where(Device.uuid == uuid)) is None:
        raise DeviceNotFound(uuid=uuid)
    selected = _UNITS.where(Device.uuid == uuid)
    if selection.unit:
        selected = selected.where(AttachHandle.key == selection.unit)
    return selected


def _is_any(rows: Sequence[AnyRow]) -> ColumnElement[bool]:
    return AttachHandle.uuid.in_([row.uuid for row in rows])


def list_unclean_units(session: Session) -> tuple[UncleanUnit, ...]:
    """Return the units that are not clean, with the progress of their jobs."""
    return _UNCLEAN.list(session, _select_unclean())


def list_unclean_by_provider(session: Session) -> dict[str, list[UncleanUnit]]:
    """Return the units that are not clean, by uuid of their resource provider."""
    units: defaultdict[str, list[UncleanUnit]] = defaultdict(list)
    statement = _select_unclean().where(Deployable.rp_uuid.is_not(None))
    for row in session.execute(statement):
        units[row.rp_uuid].append(_UNCLEAN.read(row))
    return units


_UNCLEAN: Final = Record(
    UncleanUnit,
    AttachHandle,
    Device,
    device_uuid=Device.uuid,
    unit=AttachHandle.key,
    state=AttachHandle.clean_state,
    progress=func.coalesce(JobRow.step, ''),
    reason=func.coalesce(
        func.nullif(AttachHandle.clean_reason, ''), JobRow.last_error, ''
    ),
    since=func.coalesce(AttachHandle.updated_at, AttachHandle.created_at),
)


# Any: the columns.
def _select_unclean() -> Select[*tuple[Any, ...]]:
    of_unit = and_(
        JobRow.kind == OperationKind.CLEANING, JobRow.key == AttachHandle.uuid
    )
    return (
        _UNCLEAN.select(Deployable.rp_uuid)
        .select_from(AttachHandle)
        .join(Deployable, AttachHandle.deployable_id == Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .outerjoin(JobRow, of_unit)
        .where(AttachHandle.clean_state.not_in(FREE_STATES))
        .order_by(Device.hostname, AttachHandle.id)
    )
