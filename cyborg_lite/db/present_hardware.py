# SPDX-License-Identifier: Apache-2.0
"""Devices and hosts that a forecast of a change of hardware starts from."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, literal, select
from sqlalchemy.orm import Session

from cyborg_lite.db import selectors
from cyborg_lite.db.provider_capacity import list_closures
from cyborg_lite.db.tables import AttachHandle, Deployable, Device, Service
from cyborg_lite.model.explanations import ReasonCode
from cyborg_lite.model.modes import OfferedInventory
from cyborg_lite.model.services import AGENT
from cyborg_lite.model.typed_attributes import OF_EVERY_DEVICE, TypedAttribute


@dataclass(frozen=True, slots=True)
class PresentDevice:
    """A stored device with its providers."""

    uuid: str
    hostname: str
    attributes: tuple[TypedAttribute, ...]  # that do not depend on its mode
    providers: tuple[tuple[str, OfferedInventory], ...] = ()  # by uuid
    arqs: tuple[str, ...] = ()  # uuids of the ARQs that use it
    is_reliable: bool = True  # False: the agent of its host is not up
    closed: ReasonCode | None = None  # None: units can be allocated
    closed_text: str = ''


def list_present_devices(
    session: Session, uuids: Collection[str]
) -> dict[str, PresentDevice]:
    """Return the devices by uuid, in three SELECTs. Unknown uuids are left out."""
    rows = session.execute(
        select(
            Device,
            Service.state.label('agent'),
            literal('').label('unusable_reason'),
        )
        .outerjoin(Service, Service.is_agent_of(Device.hostname))
        .where(Device.uuid.in_(uuids))
    ).all()
    providers = _list_providers(session, uuids)
    arqs = _list_arqs(session, uuids)
    return {
        row.Device.uuid: _device(row, providers[row.Device.id], arqs[row.Device.id])
        for row in rows
    }


# Any: the columns of list_present_devices.
def _device(
    row: Row[*tuple[Any, ...]],
    providers: list[tuple[str, OfferedInventory]],
    arqs: list[str],
) -> PresentDevice:
    device: Device = row.Device
    closed, text = next(list_closures(row), (None, ''))
    names = {declaration.name for declaration in OF_EVERY_DEVICE}
    attributes = selectors.list_attributes(device, None, None)
    return PresentDevice(
        uuid=device.uuid,
        hostname=device.hostname,
        attributes=tuple(item for item in attributes if item.name in names),
        providers=tuple(providers),
        arqs=tuple(arqs),
        is_reliable=selectors.is_reliable(row.agent, device.health),
        closed=closed,
        closed_text=text,
    )


def _list_providers(
    session: Session, uuids: Collection[str]
) -> defaultdict[int, list[tuple[str, OfferedInventory]]]:
    """Return what the providers of devices offer, by id of the device."""
    rows = session.execute(
        select(Deployable)
        .join(Device, Device.id == Deployable.device_id)
        .where(
            Device.uuid.in_(uuids),
            Deployable.rp_uuid.is_not(None),
            Deployable.resource_class.is_not(None),
        )
        .order_by(Deployable.name)
    )
    providers: defaultdict[int, list[tuple[str, OfferedInventory]]] = defaultdict(list)
    for item in rows.scalars():
        offer = OfferedInventory(
            item.resource_class or '', item.num_accelerators, tuple(sorted(item.traits))
        )
        providers[item.device_id].append((item.rp_uuid or '', offer))
    return providers


def _list_arqs(session: Session, uuids: Collection[str]) -> defaultdict[int, list[str]]:
    """Return the ARQs that use devices, by id of the device."""
    rows = session.execute(
        select(Deployable.device_id, AttachHandle.arq_uuid)
        .join(Device, Device.id == Deployable.device_id)
        .join(AttachHandle, AttachHandle.deployable_id == Deployable.id)
        .where(Device.uuid.in_(uuids), AttachHandle.arq_uuid.is_not(None))
        .order_by(AttachHandle.id)
    )
    arqs: defaultdict[int, list[str]] = defaultdict(list)
    for device_id, arq_uuid in rows:
        arqs[device_id].append(str(arq_uuid))
    return arqs


def list_agent_states(session: Session, hosts: Collection[str]) -> dict[str, str]:
    """Return the states of the agents of hosts, by name of the host."""
    rows = session.execute(
        select(Service.host, Service.state).where(
            Service.binary == AGENT, Service.host.in_(hosts)
        )
    )
    return {row.host: row.state for row in rows}
