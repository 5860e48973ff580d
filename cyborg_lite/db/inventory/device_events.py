# SPDX-License-Identifier: Apache-2.0
"""History of devices: the steps that other modules store in their transactions."""

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Label,
    String,
    and_,
    case,
    delete,
    func,
    insert,
    literal,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.query import Collection, list_page
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import Deployable, Device, now
from cyborg_lite.db.core.tables import DeviceEvent as Event
from cyborg_lite.db.core.tables import DeviceEvent as Row
from cyborg_lite.db.jobs import outbox, queue
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.model.devices.events import DeviceEvent, DeviceEventKind
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.notifications import DEVICE_EVENT_TYPES, DevicePayload
from cyborg_lite.model.queries import LATEST_FIRST, Query

_COLUMNS: Final = (
    'device_uuid',
    'hostname',
    'serial',
    'kind',
    'unit',
    'value',
    'reason',
    'at',
)
SERIAL: Final = case(
    (Device.hardware_id == Device.control_address, ''), else_=Device.hardware_id
)
"""SQL for the serial number of a device; empty: it has none."""
_KEPT_KINDS: Final = (DeviceEventKind.QUARANTINED, DeviceEventKind.QUARANTINE_ENDED)
_PAYLOAD: Final = Record(DevicePayload, Device, host=Device.hostname)
_EVENT: Final = Record(DeviceEvent, Row)


def add_events(
    session: Session,
    devices: ColumnElement[bool],
    kind: DeviceEventKind,
    **details: Any,
) -> int:
    """Store a step of devices in one statement, and notifications if enabled.

    :param devices: SQL that is true for the devices
    :param details: ``unit``, ``value`` and ``reason``; each is a text, or SQL for the
        text of each device
    :returns: the number of devices
    """
    texts = tuple(
        _text(details.get(name, '')).label(name) for name in ('unit', 'value', 'reason')
    )
    names = Device.uuid, Device.hostname, SERIAL
    steps = select(*names, literal(kind.value, String), *texts, now_utc())
    if outbox.is_enabled(session):
        _notify(session, devices, kind, texts)
    statement = insert(Row).from_select(_COLUMNS, steps.where(devices))
    return change(session, statement)


def add_health_changes(
    session: Session, devices: ColumnElement[bool], health: Any, reason: Any
) -> None:
    """Store that the health of devices changes now.

    The caller changes the health afterwards.

    :param devices: SQL that is true for devices whose health changes
    :param health: the new health, or SQL for the health of each device
    :param reason: the new reason, or SQL for the reason of each device
    """
    kind = DeviceEventKind.HEALTH_CHANGED
    if add_events(session, devices, kind, value=health, reason=reason):
        _set_health_since(session, devices)


def add_owner_changes(
    session: Session, devices: ColumnElement[bool], reason: ColumnElement[str]
) -> None:
    """Store that another service has begun or ended to manage devices.

    The caller stores the reasons afterwards.

    :param devices: SQL that is true for devices whose reason changes
    :param reason: SQL for the new reason of each device; an empty one ends it
    """
    if add_events(session, devices, DeviceEventKind.OWNER_CHANGED, reason=reason):
        _set_health_since(session, devices)


def _set_health_since(session: Session, devices: ColumnElement[bool]) -> None:
    # The change of the health itself is another statement.
    values = {
        'health_since': now_utc(),
        'updated_at': Device.updated_at,
        'generation': Device.generation,
    }
    change(session, update(Device).where(devices).values(**values))


# Any: text, or SQL for a text.
def _text(value: Any) -> ColumnElement[str]:
    return literal(value, String) if isinstance(value, str) else value


def _notify(
    session: Session,
    devices: ColumnElement[bool],
    kind: DeviceEventKind,
    texts: tuple[Label[str], ...],
) -> None:
    rows = session.execute(
        _PAYLOAD.select(*texts).where(devices).order_by(Device.id)
    ).all()
    classes = session.execute(
        select(Deployable.device_id, Deployable.resource_class)
        .distinct()
        .join(Device, Device.id == Deployable.device_id)
        .where(devices, Deployable.resource_class.is_not(None))
    ).all()
    payloads = [
        _PAYLOAD.read(
            row,
            resource_classes=sorted(
                str(name) for number, name in classes if number == row.row_id
            ),
            **{text.name: getattr(row, text.name) for text in texts},
        )
        for row in rows
    ]
    outbox.add_notifications(session, *DEVICE_EVENT_TYPES[kind], payloads)


_EVENTS: Final = Collection(Row, filters={})


def list_events(
    session: Session, uuid: str, query: Query = LATEST_FIRST
) -> tuple[DeviceEvent, ...]:
    """Return events of a device, also of other slots and hosts with its serial number.

    The history of a removed device can be read until it is purged.

    :raises DeviceNotFound: there is neither a device nor an event with the uuid
    """
    serials = select(Row.serial).where(Row.device_uuid == uuid, Row.serial != '')
    is_of_device = or_(Row.device_uuid == uuid, Row.serial.in_(serials))
    collection = replace(_EVENTS, visible=is_of_device)
    events = list_page(session, _EVENT.select(), query, collection, _EVENT.read)
    if not events and query.cursor is None:
        device = select(Device.id).where(Device.uuid == uuid)
        if session.scalar(device) is None:
            raise DeviceNotFound(uuid=uuid)
    return events


def delete_old_events(session: Session, before: datetime) -> int:
    """Delete events that happened before a time; return their number.

    Quarantines of devices with a serial number stay: the card may come back.
    """
    is_kept = and_(Row.serial != '', Row.kind.in_(_KEPT_KINDS))
    return change(session, delete(Row).where(Row.at < before, not_(is_kept)))


# --- quarantines: no new instance gets the device until an operator decides ---
#
# A card with a serial number keeps its quarantine in another slot or host.


def quarantine(session: Session, devices: ColumnElement[bool], reason: str) -> None:
    """Quarantine devices, and write the Placement sync jobs of their hosts.

    A device that is in quarantine keeps its reason.

    :param devices: SQL that is true for the devices
    """
    _change(session, and_(devices, Device.quarantine == ''), reason)


def end_quarantine(
    session: Session, devices: ColumnElement[bool], reason: str = ''
) -> None:
    """End the quarantine of devices, and write the Placement sync jobs."""
    _change(session, and_(devices, Device.quarantine != ''), '', reason)


def _change(
    session: Session, devices: ColumnElement[bool], value: str, reason: str = ''
) -> None:
    hosts = session.scalars(select(Device.hostname).where(devices).distinct()).all()
    if not hosts:
        return
    kind = DeviceEventKind.QUARANTINED if value else DeviceEventKind.QUARANTINE_ENDED
    add_events(session, devices, kind, reason=(value or reason)[:REASON_MAX_LENGTH])
    values = {
        'quarantine': value[:REASON_MAX_LENGTH],
        'health_since': now_utc(),
        'updated_at': now(),
    }
    change(session, update(Device).where(devices).values(**values))
    queue.sync_hosts(session, hosts)


def restore_quarantines(session: Session, new: ColumnElement[bool]) -> None:
    """Quarantine new devices whose serial number was in quarantine at last.

    :param new: SQL that is true for the devices
    """
    kinds = DeviceEventKind.QUARANTINED, DeviceEventKind.QUARANTINE_ENDED
    last = (
        select(func.max(Event.id))
        .where(Event.kind.in_(kinds), Event.serial == SERIAL)
        .correlate(Device)
        .scalar_subquery()
    )
    rows = session.execute(
        select(Device.id, Event.reason)
        .join(Event, Event.id == last)
        .where(new, SERIAL != '', Event.kind == kinds[0])
    ).all()
    reasons = {int(number): str(reason) for number, reason in rows}
    for number, reason in reasons.items():
        quarantine(session, Device.id == number, reason)
