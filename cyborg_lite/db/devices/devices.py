# SPDX-License-Identifier: Apache-2.0
"""Devices as shown to clients, their status, and the ARQs that use them.

The package ``inventory`` writes the rest. A device is lost while it is gone or failed,
or while the host does not report the attach handle. Nothing is stored: an ARQ
is usable again as soon as the device is.

A function that takes the uuid of a device raises ``DeviceNotFound`` if there is none,
and ``GenerationConflict`` if the device has another generation than the given one.
"""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from sqlalchemy import (
    JSON,
    ColumnElement,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.core.change import change, check_generation
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.query import (
    Collection,
    ConvertibleRows,
    apply_query,
    fill_page,
    name_columns,
    select_page,
)
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable, Device, now
from cyborg_lite.db.core.tables import Device as Row
from cyborg_lite.db.devices import hold
from cyborg_lite.db.inventory import device_events
from cyborg_lite.db.inventory.handles import list_owners
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import Conflict
from cyborg_lite.errors.devices import DeviceInUse, DeviceNotFound
from cyborg_lite.model.arqs.arqs import DEVICE_IN_USE_STATES, State
from cyborg_lite.model.attention import AttentionItem, AttentionKind
from cyborg_lite.model.devices.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.devices.events import DeviceEventKind
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import UNUSABLE_HEALTH, Health
from cyborg_lite.model.operations import OperationKind, SubjectType
from cyborg_lite.model.queries import SORT_KEYS, Query

_HAS_CONFLICT: Final = Row.conflict != ''
_IS_QUARANTINED: Final = and_(Row.quarantine != '', Row.health.not_in(UNUSABLE_HEALTH))
SHOWN_HEALTH: Final = case(
    (_HAS_CONFLICT, Health.CONFLICT.value),
    (_IS_QUARANTINED, Health.WITHHELD.value),
    else_=Row.health,
)
SHOWN_HEALTH_REASON: Final = case(
    (_HAS_CONFLICT, Row.conflict),
    (_IS_QUARANTINED, Row.quarantine),
    else_=Row.health_reason,
)

_MAX_NAMED: Final = 10  # ARQs

_DEVICES: Final = Collection(
    Row,
    filters=name_columns(
        Row,
        'uuid',
        'type',
        'vendor',
        'hostname',
        'status',
        'model',
        health=SHOWN_HEALTH,
    ),
    sorts=name_columns(Row, *SORT_KEYS['devices']),
)


@functools.lru_cache  # cards of a model have equal boards
def _render_board(text: str | None) -> str | None:
    """Return the board information as clients read it; None: it is empty."""
    board = None if text is None else json.loads(text)
    return json.dumps(board) if board else None


_DEVICE: Final = Record(
    DeviceRecord,
    Row,
    std_board_info=From(_render_board, cast(Row.std_board_info, Text)),
    health=SHOWN_HEALTH,
    health_reason=SHOWN_HEALTH_REASON,
    usage=From(
        lambda data: None if data is None else codec.load(Usage, data), Row.telemetry
    ),
    usage_at=Row.telemetry_at,
)


def list_devices(session: Session, query: Query) -> tuple[DeviceRecord, ...]:
    """Return the devices that match the query, in one SELECT; two if it is detailed."""

    def read(page: Query) -> ConvertibleRows[DeviceRecord]:
        rows = select_page(session, _DEVICE.select(), page, _DEVICES)
        arqs: Mapping[int, Sequence[str]] = {}
        if rows and page.detailed:
            # A subquery: a list of all ids may exceed the limits of the database.
            ids = apply_query(select(Row.id), page, _DEVICES).subquery()
            arqs = list_owners(session, Row.id, Row.id.in_(select(ids.c.id)))
        return rows, lambda row: _DEVICE.read(row, arqs=tuple(arqs.get(row.row_id, ())))

    return fill_page(query, _DEVICES, read)


def count_devices(session: Session) -> Mapping[tuple[str, str], int]:
    """Return the number of devices by model and health, in one SELECT."""
    keys = Row.model, SHOWN_HEALTH.label('health')
    rows = session.execute(select(*keys, func.count()).group_by(*keys))
    return {(model, health): number for model, health, number in rows}


@dataclass(frozen=True, slots=True)
class PreviousStatus:
    """The status of a device before it was changed, and its host."""

    hostname: str
    status: DeviceStatus
    reason: str


_STATUS: Final = Record(PreviousStatus, Row, reason=Row.status_reason)


def set_device_status(
    session: Session,
    uuid: str,
    status: DeviceStatus,
    reason: str = '',
    generation: int | None = None,
) -> PreviousStatus:
    """Set the status that the operator requires, and write a Placement sync job.

    If the device has the status already, only the reason is stored.

    :raises Conflict: the device is to be enabled while a job changes it
    """
    number, previous = _lock_status(session, uuid)
    check_generation(session, Row, uuid, generation)
    is_enabled = previous.status is not status is DeviceStatus.ENABLED
    if is_enabled and hold.is_changing(session, [number]):
        raise Conflict(
            reason=f'Device {uuid} cannot be enabled: its mode or its configuration is '
            'being changed.'
        )
    if (previous.status, previous.reason) != (status, reason):
        values = {'status': status, 'status_reason': reason, 'updated_at': now()}
        change(session, update(Row).where(Row.uuid == uuid).values(**values))
        is_device, kind = Row.uuid == uuid, DeviceEventKind.STATUS_CHANGED
        details = {'value': status.value, 'reason': reason}
        device_events.add_events(session, is_device, kind, **details)
    if previous.status is not status:
        queue.add_job(session, queue.placement_sync_job(previous.hostname))
    return previous


def _lock_status(session: Session, uuid: str) -> tuple[int, PreviousStatus]:
    """Lock a device; return its id and its status."""
    statement = _STATUS.select().where(Row.uuid == uuid).with_for_update()
    row = session.execute(statement).one_or_none()
    if row is None:
        raise DeviceNotFound(uuid=uuid)
    return row.row_id, _STATUS.read(row)


def set_quarantine(
    session: Session, uuid: str, reason: str, name: str, generation: int | None = None
) -> str:
    """Begin or end the quarantine of a device; return the name of its host.

    :param reason: empty: end the quarantine
    :param name: who decides that ARQs keep the device; empty: none may use it
    :raises DeviceInUse: ARQs use the device
    """
    number, previous = _lock_status(session, uuid)
    check_generation(session, Row, uuid, generation)
    is_device = Row.id == number
    if not reason:
        device_events.end_quarantine(session, is_device, name and f'by {name}')
        return previous.hostname
    arqs = list(session.scalars(_select_in_use(Arq.uuid).where(is_device)))
    if arqs and not name:
        raise DeviceInUse(uuid=uuid, arqs=', '.join(arqs[:_MAX_NAMED]))
    text = f'{reason} (by {name})' if name else reason
    device_events.quarantine(session, is_device, text)
    return previous.hostname


def undo_device_status(
    session: Session,
    uuid: str,
    setting: tuple[DeviceStatus, str],
    previous: PreviousStatus,
) -> None:
    """Set the previous status again, unless another change came after this one.

    If the sync job is finished, Placement has the change, and the device keeps it. A
    device that a job has begun to change stays in maintenance.

    :param setting: status and reason of the change
    """
    number, stored = _lock_status(session, uuid)
    if (
        (stored.status, stored.reason) == setting
        and not hold.is_changing(session, [number])
        and queue.has_keyed_job(session, OperationKind.RECONCILE, previous.hostname)
    ):
        set_device_status(session, uuid, previous.status, previous.reason)


# --- lost devices ---

_MISSING: Final = 'The attach handle is missing on the host.'


def is_lost() -> ColumnElement[bool]:
    """Return SQL that is true for a handle whose device cannot be used.

    For a SELECT that joins ``devices`` to the handles.
    """
    return or_(AttachHandle.missing.is_(True), Row.health.in_(UNUSABLE_HEALTH))


def describe_loss() -> ColumnElement[str]:
    """Return SQL for the reason why a handle cannot be used; empty: it can.

    For the same SELECT as ``is_lost``.
    """
    is_unusable = Row.health.in_(UNUSABLE_HEALTH)
    failure = literal('The device is ') + Row.health + ': ' + Row.health_reason
    return case(
        (is_unusable, failure), (AttachHandle.missing.is_(True), _MISSING), else_=''
    )


_LOST: Final = Record(
    AttentionItem,
    Row,
    since=case(
        (Row.health.in_(UNUSABLE_HEALTH), Row.health_since),
        else_=func.coalesce(AttachHandle.updated_at, AttachHandle.created_at),
    ),
    subject_id=Arq.uuid,
    subject_name=literal('instance ') + Arq.instance_uuid,
    reason=AttachHandle.key + ': ' + describe_loss(),
)


def list_lost_arqs(session: Session) -> Iterator[AttentionItem]:
    """Yield the bound ARQs with a lost device."""
    statement = _select_in_use(*_LOST.columns).where(
        Arq.state == State.BOUND, is_lost()
    )
    kinds = {'kind': AttentionKind.LOST_ARQ, 'subject_type': SubjectType.ARQ}
    for row in session.execute(statement.order_by(Row.hostname, Arq.id)):
        yield _LOST.read(row, **kinds)


# Any: the columns of the caller.
def _select_in_use(*columns: Any) -> Select[*tuple[Any, ...]]:
    return (
        select(*columns)
        .select_from(AttachHandle)
        .join(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .join(Deployable, Deployable.id == AttachHandle.deployable_id)
        .join(Row, Row.id == Deployable.device_id)
        .where(Arq.state.in_(DEVICE_IN_USE_STATES))
    )


# --- telemetry, written for many hosts at a time ---


# Devices of one UPDATE. A database compares each row with all of them.
_MAX_DEVICES: Final = 128


def store_telemetry(
    session: Session, telemetry: Mapping[str, Mapping[str, Usage]]
) -> None:
    """Store the telemetry of devices; ignore unknown devices.

    One SELECT, and one UPDATE for each 128 devices.

    :param telemetry: by hostname and control address
    """
    columns = Device.id, Device.hostname, Device.control_address
    # All transactions lock the rows in this order.
    statement = select(*columns).where(Device.hostname.in_(telemetry))
    rows = iter(
        (key, usage)
        for key, host, address in session.execute(statement.order_by(Device.id))
        if (usage := telemetry[host].get(address)) is not None
    )
    while batch := list(islice(rows, _MAX_DEVICES)):
        parameters: dict[str, Any] = {}
        for number in range(_count_pairs(len(batch))):
            # Repetitions of the last device fill the statement up.
            key, usage = batch[min(number, len(batch) - 1)]
            parameters[f'id_{number}'] = key
            parameters[f'usage_{number}'] = codec.dump(usage)
        change(session, _UPDATES[_count_pairs(len(batch))], parameters)


def _count_pairs(devices: int) -> int:
    """Return the size of the smallest statement for at least ``devices`` devices."""
    return next(size for size in _UPDATES if size >= devices)


def _build_update(devices: int) -> Update:
    """Return the statement for a number of devices; it is compiled once."""
    ids: list[ColumnElement[int]] = [
        bindparam(f'id_{number}') for number in range(devices)
    ]
    usages = [bindparam(f'usage_{number}', type_=JSON) for number in range(devices)]
    values = {
        Device.telemetry: case(
            *((Device.id == key, usage) for key, usage in zip(ids, usages, strict=True))
        ),
        Device.telemetry_at: now_utc(),
        # Telemetry is no change of the device, so time and generation stay.
        Device.updated_at: Device.updated_at,
        Device.generation: Device.generation,
    }
    return update(Device).where(Device.id.in_(ids)).values(values)


_UPDATES: Final = {size: _build_update(size) for size in (8, 32, _MAX_DEVICES)}
