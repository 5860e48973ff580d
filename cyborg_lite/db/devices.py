# SPDX-License-Identifier: Apache-2.0
"""Devices as they are shown; how they come and go is in inventory.py."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import case, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import jobs
from cyborg_lite.db.change import change
from cyborg_lite.db.providers import sync_job
from cyborg_lite.db.query import Collection, narrowed, page
from cyborg_lite.db.reading import Rows, filled, readable
from cyborg_lite.db.tables import AttachHandle, Deployable, now
from cyborg_lite.db.tables import Device as Row
from cyborg_lite.exceptions import DeviceNotFound
from cyborg_lite.model.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.queries import Query
from cyborg_lite.model.usage import expanded

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


def listed(session: Session, query: Query) -> tuple[DeviceRecord, ...]:
    """Those that fit, in one SELECT; a detailed query costs one more.

    :raises InvalidInput: an unknown filter, sort key or marker
    """

    def read(part: Query) -> tuple[Rows, Iterable[DeviceRecord]]:
        rows = page(session, select(Row), part, _DEVICES)
        users = _users(session, part) if rows and part.detailed else {}
        return rows, readable(rows, lambda row: _record(row, users.get(row.id, ())))

    return filled(query, read)


def _users(session: Session, query: Query) -> dict[int, list[str]]:
    """Requests by device. Joined, since a list of all ids may be too long to send."""
    ids = narrowed(select(Row.id), query, _DEVICES).subquery()
    wanted = (
        select(Deployable.device_id, AttachHandle.arq_uuid)
        .join(ids, ids.c.id == Deployable.device_id)
        .join(AttachHandle, AttachHandle.deployable_id == Deployable.id)
        .where(AttachHandle.arq_uuid.is_not(None))
        .order_by(AttachHandle.id)
    )
    found: dict[int, list[str]] = defaultdict(list)
    for device, arq in session.execute(wanted):
        found[device].append(str(arq))
    return found


def _record(row: Row, users: Sequence[str]) -> DeviceRecord:
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
        arqs=tuple(users),
        health=Health.CONFLICT if row.conflict else Health(row.health),
        health_reason=row.conflict or row.health_reason,
        created_at=row.created_at,
        updated_at=row.updated_at,
        usage=None if row.figures is None else expanded(row.figures),
    )


@dataclass(frozen=True, slots=True)
class Former:
    """A device whose status was changed, as it was."""

    hostname: str
    status: DeviceStatus
    reason: str


def set_status(
    session: Session, uuid: str, status: DeviceStatus, reason: str = ''
) -> Former | None:
    """Change what the operator wants, and call for Placement to follow.

    None: it has that status already, and Placement nothing to follow.

    :raises DeviceNotFound: no such device
    """
    columns = (Row.hostname, Row.status, Row.status_reason)
    wanted = select(*columns).where(Row.uuid == uuid).with_for_update()
    found = session.execute(wanted).one_or_none()
    if found is None:
        raise DeviceNotFound(uuid=uuid)
    former = Former(
        hostname=found.hostname,
        status=DeviceStatus(found.status),
        reason=found.status_reason,
    )
    changed = {'status': status, 'status_reason': reason}
    if (former.status, former.reason) != (status, reason):
        of_it = update(Row).where(Row.uuid == uuid)
        change(session, of_it.values(**changed, updated_at=now()))
    if former.status is status:
        return None
    jobs.add(session, sync_job(former.hostname))
    return former
