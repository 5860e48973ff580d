# SPDX-License-Identifier: Apache-2.0
"""The rows of a host's inventory, laid out flat, and where each of them is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from cyborg_lite.db.tables import AttachHandle, Attribute, Deployable, Device
from cyborg_lite.model.inventory import HandleType, Health
from cyborg_lite.model.inventory_facts import (
    DeviceFacts,
    Known,
    Layout,
    LeafPath,
    PartFacts,
    PartPath,
    UnitFacts,
    part_of,
)


@dataclass(frozen=True, slots=True)
class Ids:
    """Primary keys by path."""

    devices: dict[str, int] = field(default_factory=dict)
    parts: dict[PartPath, int] = field(default_factory=dict)
    units: dict[LeafPath, int] = field(default_factory=dict)
    attributes: dict[LeafPath, int] = field(default_factory=dict)
    # Attributes that an admin added; the report does not know them.
    added: dict[LeafPath, int] = field(default_factory=dict)


def load(session: Session, hostname: str) -> tuple[Known, Ids]:
    """In four SELECTs; in one if the host is new."""
    mine = Device.hostname == hostname
    devices = session.scalars(select(Device).where(mine).order_by(Device.id)).all()
    if not devices:
        return Known(Layout({}, {}, {}, {}), {}, frozenset()), Ids()
    deployables = session.scalars(
        select(Deployable).join(Device).where(mine).order_by(Deployable.id)
    ).all()
    handles = session.scalars(_of(AttachHandle).where(mine)).all()
    attributes = session.scalars(_of(Attribute).where(mine)).all()
    paths = _paths(devices, deployables)
    return _known(devices, deployables, handles, attributes, paths)


def _of(table: Any) -> Select[Any]:
    """Any: one of the classes whose rows belong to a deployable."""
    return (
        select(table)
        .join(Deployable, table.deployable_id == Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .order_by(table.id)
    )


def _paths(
    devices: Sequence[Device], deployables: Sequence[Deployable]
) -> dict[int, PartPath]:
    """By id of the deployable."""
    identities = {device.id: device.hardware_id for device in devices}
    roots = {each.device_id: each.name for each in deployables if not each.parent_id}
    return {
        each.id: (identities[each.device_id], part_of(each.name, roots[each.device_id]))
        for each in deployables
    }


def _known(
    devices: Sequence[Device],
    deployables: Sequence[Deployable],
    handles: Sequence[AttachHandle],
    attributes: Sequence[Attribute],
    paths: dict[int, PartPath],
) -> tuple[Known, Ids]:
    ids = Ids()
    layout = Layout(
        devices={row.hardware_id: _device(row) for row in devices},
        parts={paths[row.id]: _part(row, paths) for row in deployables},
        units={(*paths[row.deployable_id], row.key): _unit(row) for row in handles},
        attributes={
            (*paths[row.deployable_id], row.key): row.value
            for row in attributes
            if row.reported
        },
    )
    ids.devices.update((row.hardware_id, row.id) for row in devices)
    ids.parts.update((path, number) for number, path in paths.items())
    for handle in handles:
        ids.units[*paths[handle.deployable_id], handle.key] = handle.id
    for attribute in attributes:
        those = ids.attributes if attribute.reported else ids.added
        those[*paths[attribute.deployable_id], attribute.key] = attribute.id
    names = {paths[row.id]: row.name for row in deployables}
    held = frozenset(
        (*paths[row.deployable_id], row.key) for row in handles if row.arq_uuid
    )
    return Known(layout, names, held), ids


def _device(row: Device) -> DeviceFacts:
    return DeviceFacts(
        type=row.type,
        vendor=row.vendor,
        model=row.model,
        driver=row.driver,
        address=row.address,
        hardware_id=row.hardware_id,
        std_board_info=row.std_board_info or {},
        vendor_board_info=row.vendor_board_info,
        health=Health(row.health),
        health_reason=row.health_reason,
    )


def _part(row: Deployable, paths: dict[int, PartPath]) -> PartFacts:
    return PartFacts(
        parent=paths[row.parent_id][1] if row.parent_id else None,
        resource_class=row.resource_class,
        traits=tuple(row.traits),
        total=row.num_accelerators,
        reserved=row.reserved,
        driver_name=row.driver_name or '',
    )


def _unit(row: AttachHandle) -> UnitFacts:
    return UnitFacts(
        key=row.key,
        type=HandleType(row.type),
        info=row.info,
        needs_host=row.needs_host,
        managed=row.managed,
        in_use=row.in_use,
        missing=row.missing,
    )
