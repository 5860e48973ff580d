# SPDX-License-Identifier: Apache-2.0
"""Devices as shown to clients, their status, and the ARQs that use them.

The package ``inventory`` writes the rest. A device is lost while it is gone or failed,
or while the host does not report the attach handle. Nothing is stored: an ARQ
is usable again as soon as the device is.
"""

import functools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    case,
    cast,
    func,
    or_,
    select,
    update,
)
from sqlalchemy import Row as ResultRow
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.generations import check_generation
from cyborg_lite.db.core.plain_rows import PlainRow
from cyborg_lite.db.core.query import (
    Collection,
    Rows,
    apply_query,
    convert_rows,
    fill_page,
    select_page,
)
from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable, now
from cyborg_lite.db.core.tables import Device as Row
from cyborg_lite.db.devices import events, hold
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import Conflict
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.model.arqs.arqs import DEVICE_IN_USE_STATES, State
from cyborg_lite.model.construction import find_constructor
from cyborg_lite.model.devices.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.devices.events import DeviceEventKind, EventDetails
from cyborg_lite.model.devices.impact import DeviceImpact
from cyborg_lite.model.devices.telemetry import usage_from_json
from cyborg_lite.model.inventory.host_report import UNUSABLE_HEALTH, Health
from cyborg_lite.model.jobs import JobType
from cyborg_lite.model.queries import Query

_DEVICES: Final = Collection(
    Row,
    filters={
        'uuid': Row.uuid,
        'type': Row.type,
        'vendor': Row.vendor,
        'hostname': Row.hostname,
        'status': Row.status,
        'model': Row.model,
        'health': case((Row.conflict != '', Health.CONFLICT), else_=Row.health),
    },
    sorts={
        'uuid': Row.uuid,
        'type': Row.type,
        'vendor': Row.vendor,
        'model': Row.model,
        'hostname': Row.hostname,
        'status': Row.status,
        'created_at': Row.created_at,
        'updated_at': Row.updated_at,
    },
)


_RECORD: Final = select(
    PlainRow(
        Row,
        Row.id,
        Row.uuid,
        Row.type,
        Row.vendor,
        Row.model,
        Row.hostname,
        cast(Row.std_board_info, Text).label('std_board_text'),
        Row.vendor_board_info,
        Row.status,
        Row.status_reason,
        Row.health,
        Row.health_reason,
        Row.conflict,
        Row.telemetry,
        Row.telemetry_at,
        Row.health_since,
        Row.created_at,
        Row.updated_at,
        Row.generation,
    )
)


_build_record: Final = find_constructor(DeviceRecord)


def list_devices(session: Session, query: Query) -> tuple[DeviceRecord, ...]:
    """Return the devices that match the query, in one SELECT; two if it is detailed.

    :raises InvalidInput: an unknown filter, sort key or marker
    """

    def read(page: Query) -> tuple[Rows, Iterable[DeviceRecord]]:
        rows: Rows = select_page(session, _RECORD, page, _DEVICES)
        arqs = _arqs_by_device(session, page) if rows and page.detailed else {}
        return rows, convert_rows(rows, lambda row: _record(row, arqs.get(row.id, ())))

    return fill_page(query, _DEVICES, read)


def _arqs_by_device(session: Session, query: Query) -> dict[int, list[str]]:
    """Return the ARQs that own handles, by id of the device.

    A join, because a list of all ids may exceed the limits of the database.
    """
    ids = apply_query(select(Row.id), query, _DEVICES).subquery()
    statement = (
        select(Deployable.device_id, AttachHandle.arq_uuid)
        .join(ids, ids.c.id == Deployable.device_id)
        .join(AttachHandle, AttachHandle.deployable_id == Deployable.id)
        .where(AttachHandle.arq_uuid.is_not(None))
        .order_by(AttachHandle.id)
    )
    arqs: dict[int, list[str]] = defaultdict(list)
    for device_id, arq_uuid in session.connection().execute(statement):
        arqs[device_id].append(str(arq_uuid))
    return arqs


# Any: a named tuple of the columns of `_RECORD`.
def _record(row: Any, arqs: Sequence[str]) -> DeviceRecord:
    board = row.std_board_text
    return _build_record(
        uuid=row.uuid,
        type=row.type,
        vendor=row.vendor,
        model=row.model,
        hostname=row.hostname,
        std_board_info=None if board is None else _render_board(board),
        vendor_board_info=row.vendor_board_info,
        status=DeviceStatus(row.status),
        status_reason=row.status_reason,
        arqs=tuple(arqs),
        health=Health.CONFLICT if row.conflict else Health(row.health),
        health_reason=row.conflict or row.health_reason,
        created_at=row.created_at,
        updated_at=row.updated_at,
        usage=None if row.telemetry is None else usage_from_json(row.telemetry),
        health_since=row.health_since,
        usage_at=row.telemetry_at,
        generation=row.generation,
    )


@functools.lru_cache  # cards of a model have equal boards
def _render_board(text: str) -> str | None:
    """Return the board information as clients read it; None: it is empty."""
    board = json.loads(text)
    return json.dumps(board) if board else None


@dataclass(frozen=True, slots=True)
class PreviousStatus:
    """The status of a device before it was changed, and its host."""

    hostname: str
    status: DeviceStatus
    reason: str


def set_device_status(
    session: Session,
    uuid: str,
    status: DeviceStatus,
    reason: str = '',
    generation: int | None = None,
) -> PreviousStatus:
    """Set the status that the operator requires, and write a Placement sync job.

    If the device has the status already, only the reason is stored.

    :param generation: that the device must have; None: any
    :raises DeviceNotFound: no device has the uuid
    :raises GenerationConflict: the device has another generation
    :raises Conflict: the device is to be enabled while a job changes it
    """
    columns = (Row.id, Row.hostname, Row.status, Row.status_reason)
    statement = select(*columns).where(Row.uuid == uuid).with_for_update()
    row = session.execute(statement).one_or_none()
    if row is None:
        raise DeviceNotFound(uuid=uuid)
    check_generation(session, Row, uuid, generation)
    previous = PreviousStatus(
        hostname=row.hostname,
        status=DeviceStatus(row.status),
        reason=row.status_reason,
    )
    is_enabled = previous.status is not status is DeviceStatus.ENABLED
    if is_enabled and hold.is_changing(session, [row.id]):
        raise Conflict(
            reason=f'Device {uuid} cannot be enabled: its mode or its configuration is '
            'being changed.'
        )
    if (previous.status, previous.reason) != (status, reason):
        values = {'status': status, 'status_reason': reason, 'updated_at': now()}
        change(session, update(Row).where(Row.uuid == uuid).values(**values))
        details = EventDetails(value=status.value, reason=reason)
        kind = DeviceEventKind.STATUS_CHANGED
        events.add_events(session, Row.uuid == uuid, kind, details)
    if previous.status is not status:
        queue.add_job(session, queue.placement_sync_job(previous.hostname))
    return previous


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
    :raises DeviceNotFound: no device has the uuid
    """
    columns = (Row.id, Row.status, Row.status_reason)
    statement = select(*columns).where(Row.uuid == uuid).with_for_update()
    row = session.execute(statement).one_or_none()
    if row is None:
        raise DeviceNotFound(uuid=uuid)
    is_current = (DeviceStatus(row.status), row.status_reason) == setting
    if (
        is_current
        and not hold.is_changing(session, [row.id])
        and queue.has_keyed_job(session, JobType.PLACEMENT_SYNC, previous.hostname)
    ):
        set_device_status(session, uuid, previous.status, previous.reason)


# --- lost devices ---

_MISSING: Final = 'The attach handle is missing on the host.'


def is_lost() -> ColumnElement[bool]:
    """Return SQL that is true for a handle whose device cannot be used.

    For a SELECT that joins ``devices`` to the handles.
    """
    return or_(AttachHandle.missing.is_(True), Row.health.in_(UNUSABLE_HEALTH))


def describe_loss(missing: bool, health: str | None, reason: str | None) -> str:
    """Return why a handle cannot be used, or an empty string.

    :param health: of the device; None: there is no device
    """
    if health in UNUSABLE_HEALTH:
        return f'The device is {health}: {reason}'
    return _MISSING if missing else ''


def list_impacts(
    session: Session, device: str | None = None, hostname: str | None = None
) -> tuple[DeviceImpact, ...]:
    """Return the ARQs that use devices, in one SELECT.

    :param device: uuid, serial number or control address; None: all devices
    :param hostname: None: all hosts
    """
    statement = _select_in_use(
        Arq, AttachHandle.missing, Row, AttachHandle.key.label('key')
    ).order_by(Row.hostname, Row.control_address, Arq.id)
    if device is not None:
        statement = statement.where(_is_named(device))
    if hostname is not None:
        statement = statement.where(Row.hostname == hostname)
    return tuple(_impact(row) for row in session.execute(statement))


def check_device_exists(
    session: Session, device: str, hostname: str | None = None
) -> None:
    """Check that a device is stored.

    :param device: uuid, serial number or control address
    :raises DeviceNotFound: no device has the identifier
    """
    statement = select(Row.id).where(_is_named(device)).limit(1)
    if hostname is not None:
        statement = statement.where(Row.hostname == hostname)
    if session.scalar(statement) is None:
        raise DeviceNotFound(uuid=device)


def count_lost_arqs(session: Session) -> Mapping[str, int]:
    """Return the number of bound ARQs with a lost device, by host."""
    statement = (
        _select_in_use(Row.hostname, func.count())
        .where(Arq.state == State.BOUND, is_lost())
        .group_by(Row.hostname)
    )
    return {row[0]: row[1] for row in session.execute(statement)}


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


def _is_named(device: str) -> ColumnElement[bool]:
    names = (Row.uuid, Row.hardware_id, Row.control_address)
    return or_(*(column == device for column in names))


def _impact(row: ResultRow[*tuple[Any, ...]]) -> DeviceImpact:
    arq: Arq = row.Arq
    device: Row = row.Device
    loss = describe_loss(row.missing, device.health, device.health_reason)
    return DeviceImpact(
        hostname=device.hostname,
        address=device.control_address,
        device_uuid=device.uuid,
        model=device.model,
        handle=row.key,
        arq_uuid=arq.uuid,
        instance_uuid=arq.instance_uuid,
        project_id=arq.project_id,
        device_profile_name=arq.device_profile_name,
        loss=loss,
    )
