# SPDX-License-Identifier: Apache-2.0
"""Owners of devices, and devices that another service manages as well."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from sqlalchemy import and_, case, exists, or_, select, union, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change, value_by_row
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import AttachHandle, Deployable, Device, Service
from cyborg_lite.db.inventory import device_events
from cyborg_lite.model.hosts.services import AGENT
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.ownership.plan import OwnedDevice


def _read_product(board: Mapping[str, str] | None) -> str:
    return (board or {}).get('product_id', '')


_OWNED: Final = Record(
    OwnedDevice,
    Device,
    address=Device.control_address,
    product=From(_read_product, Device.std_board_info),
    conflict=case(
        (Device.conflict != '', Device.conflict),
        (Device.health == Health.CONFLICT, Device.health_reason),
        else_='',
    ),
    reason=Device.health_reason,
)


def list_device_functions(session: Session, hostname: str) -> dict[str, frozenset[str]]:
    """Return the PCI addresses of all functions of each device, by device uuid."""
    rows = session.execute(
        select(Device.uuid, Device.control_address, AttachHandle.key)
        .outerjoin(Deployable, Deployable.device_id == Device.id)
        .outerjoin(AttachHandle, AttachHandle.deployable_id == Deployable.id)
        .where(Device.hostname == hostname)
    )
    functions: defaultdict[str, set[str]] = defaultdict(set)
    for uuid, address, key in rows:
        # The key of a handle is the address of its function, or begins with it.
        function = (key or address).partition('/')[0]
        functions[uuid] |= {address.lower(), function.lower()}
    return {uuid: frozenset(addresses) for uuid, addresses in functions.items()}


def store_conflicts(session: Session, reasons: Mapping[str, str]) -> None:
    """Store which other service manages a device.

    :param reasons: by device uuid; an empty reason ends the conflict
    """
    if not reasons:
        return
    reason = value_by_row(Device.uuid, reasons)
    differs = and_(Device.uuid.in_(reasons), Device.conflict != reason)
    device_events.add_owner_changes(session, differs, reason)
    change(
        session,
        update(Device).where(Device.uuid.in_(reasons)).values(conflict=reason),
    )


def list_owned_devices(
    session: Session, hostname: str | None = None
) -> tuple[OwnedDevice, ...]:
    """Return the devices by host and address, in one SELECT.

    :param hostname: None: of all hosts
    """
    is_offered = exists().where(
        Deployable.device_id == Device.id, Deployable.resource_class.is_not(None)
    )
    devices = _OWNED.select(is_offered.label('is_offered')).order_by(
        Device.hostname, Device.control_address
    )
    if hostname is not None:
        devices = devices.where(Device.hostname == hostname)
    return tuple(
        _OWNED.read(row, schedulable=row.is_offered) for row in session.execute(devices)
    )


def is_known_host(session: Session, hostname: str) -> bool:
    """Return whether the host has an agent or a device."""
    agents = select(Service.id).where(Service.is_agent_of(hostname))
    devices = select(Device.id).where(Device.hostname == hostname)
    is_known = or_(agents.exists(), devices.exists())
    return bool(session.scalar(select(case((is_known, True), else_=False))))


def list_hosts(session: Session) -> tuple[str, ...]:
    """Return the hosts that have an agent or devices, sorted."""
    agents = select(Service.host).where(Service.binary == AGENT)
    return tuple(sorted(session.scalars(union(agents, select(Device.hostname)))))
