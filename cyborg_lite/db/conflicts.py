# SPDX-License-Identifier: Apache-2.0
"""Devices that another service manages too, as Placement shows it."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import by_row, change
from cyborg_lite.db.tables import AttachHandle, Deployable, Device
from cyborg_lite.model.inventory import Health


@dataclass(frozen=True, slots=True)
class Contested:
    """A device that is managed twice."""

    hostname: str
    address: str
    reason: str


def addresses(session: Session, hostname: str) -> dict[str, frozenset[str]]:
    """By uuid of the device: the PCI functions that it is and that it consists of."""
    keys = (
        select(Device.uuid, Device.address, AttachHandle.key)
        .outerjoin(Deployable, Deployable.device_id == Device.id)
        .outerjoin(AttachHandle, AttachHandle.deployable_id == Deployable.id)
        .where(Device.hostname == hostname)
    )
    found: defaultdict[str, set[str]] = defaultdict(set)
    for uuid, address, key in session.execute(keys):
        # The key of a unit is its function, or begins with it.
        found[uuid] |= {address.lower(), (key or address).partition('/')[0].lower()}
    return {uuid: frozenset(those) for uuid, those in found.items()}


def mark(session: Session, reasons: Mapping[str, str]) -> None:
    """By uuid of the device: who else manages it; empty: nobody any more."""
    if not reasons:
        return
    reason = by_row(Device.uuid, reasons)
    change(
        session,
        update(Device).where(Device.uuid.in_(reasons)).values(conflict=reason),
    )


def listed(session: Session) -> tuple[Contested, ...]:
    """All of them, on whichever side it was found out."""
    rows = session.execute(
        select(Device.hostname, Device.address, Device.conflict, Device.health_reason)
        .where(or_(Device.conflict != '', Device.health == Health.CONFLICT))
        .order_by(Device.hostname, Device.address)
    )
    return tuple(
        Contested(row.hostname, row.address, row.conflict or row.health_reason)
        for row in rows
    )
