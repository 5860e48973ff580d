# SPDX-License-Identifier: Apache-2.0
"""Who has which device, for people."""

from sqlalchemy import select, union
from sqlalchemy.orm import Session

from cyborg_lite.db.services import AGENT
from cyborg_lite.db.tables import Deployable, Device, Service
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.owners import OwnedDevice


def owned(session: Session, hostname: str | None = None) -> tuple[OwnedDevice, ...]:
    """All devices, or those of one host, by host and address; two SELECTs."""
    devices = select(Device).order_by(Device.hostname, Device.address)
    offered = (
        select(Deployable.device_id)
        .where(Deployable.resource_class.is_not(None))
        .distinct()
    )
    if hostname is not None:
        devices = devices.where(Device.hostname == hostname)
    schedulable = set(session.scalars(offered))
    return tuple(_owned(row, row.id in schedulable) for row in session.scalars(devices))


def _owned(row: Device, schedulable: bool) -> OwnedDevice:
    board = row.std_board_info or {}
    contested = row.health == Health.CONFLICT
    return OwnedDevice(
        hostname=row.hostname,
        address=row.address,
        vendor=row.vendor,
        product=board.get('product_id', ''),
        model=row.model,
        driver=row.driver,
        conflict=row.conflict or (row.health_reason if contested else ''),
        schedulable=schedulable,
        reason=row.health_reason,
    )


def hosts(session: Session) -> tuple[str, ...]:
    """All that have an agent, or devices."""
    agents = select(Service.host).where(Service.binary == AGENT)
    return tuple(sorted(session.scalars(union(agents, select(Device.hostname)))))
