# SPDX-License-Identifier: Apache-2.0
"""Devices as shown to clients, and their status; ``inventory`` writes the rest."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import case, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.jobs.new_jobs import placement_sync_job
from cyborg_lite.db.query import (
    Collection,
    Rows,
    apply_query,
    convert_rows,
    fill_page,
    select_page,
)
from cyborg_lite.db.tables import AttachHandle, Deployable, now
from cyborg_lite.db.tables import Device as Row
from cyborg_lite.exceptions import DeviceNotFound
from cyborg_lite.model.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.queries import Query
from cyborg_lite.model.usage import usage_from_json

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


def list_devices(session: Session, query: Query) -> tuple[DeviceRecord, ...]:
    """Return the devices that match the query, in one SELECT; two if it is detailed.

    :raises InvalidInput: an unknown filter, sort key or marker
    """

    def read(part: Query) -> tuple[Rows, Iterable[DeviceRecord]]:
        rows = select_page(session, select(Row), part, _DEVICES)
        arqs = _arqs_by_device(session, part) if rows and part.detailed else {}
        return rows, convert_rows(rows, lambda row: _record(row, arqs.get(row.id, ())))

    return fill_page(query, read)


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
    for device_id, arq_uuid in session.execute(statement):
        arqs[device_id].append(str(arq_uuid))
    return arqs


def _record(row: Row, arqs: Sequence[str]) -> DeviceRecord:
    board = row.std_board_info
    return DeviceRecord(
        uuid=row.uuid,
        type=row.type,
        vendor=row.vendor,
        model=row.model,
        hostname=row.hostname,
        std_board_info=json.dumps(board) if board else None,
        vendor_board_info=row.vendor_board_info,
        status=DeviceStatus(row.status),
        status_reason=row.status_reason,
        arqs=tuple(arqs),
        health=Health.CONFLICT if row.conflict else Health(row.health),
        health_reason=row.conflict or row.health_reason,
        created_at=row.created_at,
        updated_at=row.updated_at,
        usage=None if row.telemetry is None else usage_from_json(row.telemetry),
    )


@dataclass(frozen=True, slots=True)
class PreviousStatus:
    """The status of a device before it was changed, and its host."""

    hostname: str
    status: DeviceStatus
    reason: str


def set_device_status(
    session: Session, uuid: str, status: DeviceStatus, reason: str = ''
) -> PreviousStatus | None:
    """Set the status that the operator requires, and write a Placement sync job.

    :returns: None if the device had the status already; only the reason is stored then
    :raises DeviceNotFound: no device has the uuid
    """
    columns = (Row.hostname, Row.status, Row.status_reason)
    statement = select(*columns).where(Row.uuid == uuid).with_for_update()
    row = session.execute(statement).one_or_none()
    if row is None:
        raise DeviceNotFound(uuid=uuid)
    previous = PreviousStatus(
        hostname=row.hostname,
        status=DeviceStatus(row.status),
        reason=row.status_reason,
    )
    if (previous.status, previous.reason) != (status, reason):
        values = {'status': status, 'status_reason': reason, 'updated_at': now()}
        change(session, update(Row).where(Row.uuid == uuid).values(**values))
    if previous.status is status:
        return None
    queue.add_job(session, placement_sync_job(previous.hostname))
    return previous
