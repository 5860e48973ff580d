# SPDX-License-Identifier: Apache-2.0
"""Quarantines: devices that no new instance gets until an operator decides.

A card with a serial number keeps its quarantine in another slot or host.
"""

from sqlalchemy import ColumnElement, and_, func, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.tables import Device, now
from cyborg_lite.db.core.tables import DeviceEvent as Event
from cyborg_lite.db.inventory import device_events
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.devices.events import DeviceEventKind, EventDetails
from cyborg_lite.model.limits import REASON_MAX_LENGTH


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
    details = EventDetails(reason=(value or reason)[:REASON_MAX_LENGTH])
    device_events.add_events(session, devices, kind, details)
    values = {
        'quarantine': value[:REASON_MAX_LENGTH],
        'health_since': now_utc(),
        'updated_at': now(),
    }
    change(session, update(Device).where(devices).values(**values))
    for host in hosts:
        queue.add_job(session, queue.placement_sync_job(host))


def restore_quarantines(session: Session, new: ColumnElement[bool]) -> None:
    """Quarantine new devices whose serial number was in quarantine at last.

    :param new: SQL that is true for the devices
    """
    kinds = DeviceEventKind.QUARANTINED, DeviceEventKind.QUARANTINE_ENDED
    last = (
        select(func.max(Event.id))
        .where(Event.kind.in_(kinds), Event.serial == device_events.SERIAL)
        .correlate(Device)
        .scalar_subquery()
    )
    rows = session.execute(
        select(Device.id, Event.reason)
        .join(Event, Event.id == last)
        .where(new, device_events.SERIAL != '', Event.kind == kinds[0])
    ).all()
    reasons = {int(number): str(reason) for number, reason in rows}
    for number, reason in reasons.items():
        quarantine(session, Device.id == number, reason)
