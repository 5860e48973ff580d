# SPDX-License-Identifier: Apache-2.0
"""The stored inventory of a host as a flat layout, with primary keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from cyborg_lite.db.tables import AttachHandle, Attribute, Deployable, Device
from cyborg_lite.model.inventory import HandleType, Health
from cyborg_lite.model.inventory_facts import (
    DeployableFacts,
    DeployablePath,
    DeviceFacts,
    HandleFacts,
    Layout,
    LeafPath,
    StoredInventory,
    name_suffix,
)


@dataclass(frozen=True, slots=True)
class RowIds:
    """Primary keys of the rows of a host, by path."""

    devices: dict[str, int] = field(default_factory=dict)
    deployables: dict[DeployablePath, int] = field(default_factory=dict)
    handles: dict[LeafPath, int] = field(default_factory=dict)
    attributes: dict[LeafPath, int] = field(default_factory=dict)
    # Attributes that an admin has added; reports do not contain them.
    admin_attributes: dict[LeafPath, int] = field(default_factory=dict)


def load_inventory(session: Session, hostname: str) -> tuple[StoredInventory, RowIds]:
    """Read the inventory of a host, in four SELECTs; in one if the host is new."""
    on_host = Device.hostname == hostname
    devices = session.scalars(select(Device).where(on_host).order_by(Device.id)).all()
    if not devices:
        return StoredInventory(Layout({}, {}, {}, {}), {}, frozenset()), RowIds()
    deployables = session.scalars(
        select(Deployable).join(Device).where(on_host).order_by(Deployable.id)
    ).all()
    handles = session.scalars(_select_children(AttachHandle).where(on_host)).all()
    attributes = session.scalars(_select_children(Attribute).where(on_host)).all()
    paths = _paths(devices, deployables)
    return _inventory(devices, deployables, handles, attributes, paths)


def _select_children(table: Any) -> Select[Any]:
    """Return a SELECT of the rows of a class that belongs to a deployable."""
    return (
        select(table)
        .join(Deployable, table.deployable_id == Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .order_by(table.id)
    )


def _paths(
    devices: Sequence[Device], deployables: Sequence[Deployable]
) -> dict[int, DeployablePath]:
    """Return the path of each deployable, by its id."""
    identities = {device.id: device.hardware_id for device in devices}
    roots = {row.device_id: row.name for row in deployables if not row.parent_id}
    return {
        row.id: (identities[row.device_id], name_suffix(row.name, roots[row.device_id]))
        for row in deployables
    }


def _inventory(
    devices: Sequence[Device],
    deployables: Sequence[Deployable],
    handles: Sequence[AttachHandle],
    attributes: Sequence[Attribute],
    paths: dict[int, DeployablePath],
) -> tuple[StoredInventory, RowIds]:
    ids = RowIds()
    layout = Layout(
        devices={row.hardware_id: _device_facts(row) for row in devices},
        deployables={
            paths[row.id]: _deployable_facts(row, paths) for row in deployables
        },
        handles={
            (*paths[row.deployable_id], row.key): _handle_facts(row) for row in handles
        },
        attributes={
            (*paths[row.deployable_id], row.key): row.value
            for row in attributes
            if row.reported and not row.hidden
        },
    )
    ids.devices.update((row.hardware_id, row.id) for row in devices)
    ids.deployables.update((path, number) for number, path in paths.items())
    for handle in handles:
        ids.handles[*paths[handle.deployable_id], handle.key] = handle.id
    for attribute in attributes:
        target = ids.attributes if attribute.reported else ids.admin_attributes
        target[*paths[attribute.deployable_id], attribute.key] = attribute.id
    names = {paths[row.id]: row.name for row in deployables}
    claimed = frozenset(
        (*paths[row.deployable_id], row.key) for row in handles if row.arq_uuid
    )
    hidden = frozenset(
        (*paths[row.deployable_id], row.key) for row in attributes if row.hidden
    )
    return StoredInventory(layout, names, claimed, hidden), ids


def _device_facts(row: Device) -> DeviceFacts:
    return DeviceFacts(
        type=row.type,
        vendor=row.vendor,
        model=row.model,
        driver=row.driver,
        control_address=row.control_address,
        hardware_id=row.hardware_id,
        std_board_info=row.std_board_info or {},
        vendor_board_info=row.vendor_board_info,
        health=Health(row.health),
        health_reason=row.health_reason,
    )


def _deployable_facts(
    row: Deployable, paths: dict[int, DeployablePath]
) -> DeployableFacts:
    return DeployableFacts(
        parent=paths[row.parent_id][1] if row.parent_id else None,
        resource_class=row.resource_class,
        traits=tuple(row.traits),
        total=row.num_accelerators,
        reserved=row.reserved,
        driver_name=row.driver_name or '',
    )


def _handle_facts(row: AttachHandle) -> HandleFacts:
    return HandleFacts(
        key=row.key,
        type=HandleType(row.type),
        info=row.info,
        needs_host=row.needs_host,
        managed=row.managed,
        in_use=row.in_use,
        missing=row.missing,
    )
