# SPDX-License-Identifier: Apache-2.0
"""Deployables of Cyborg and their attributes.

Cyborg stores the resource class and the traits of a deployable as attributes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.plan import (
    CloudRows,
    NewAttribute,
    NewDeployable,
    NewDevice,
    StoredRows,
    Table,
)
from cyborg_lite.cyborg_import.source_rows import (
    SourceAttribute,
    SourceDatabase,
    SourceDeployable,
)

_CLASS_KEY: Final = 'rc'
_TRAIT_KEY: Final = re.compile(r'traits?\d+')
_MAX_KEY_LENGTH: Final = 255


def convert_deployables(
    source: SourceDatabase,
    devices: Mapping[int, NewDevice],
    stored: StoredRows,
    notes: Notes,
) -> dict[int, NewDeployable]:
    """Return the deployables that can be imported, by id in the source.

    :param devices: the devices that can be imported, by id
    """
    attributes: dict[int, list[SourceAttribute]] = defaultdict(list)
    for attribute in source.attributes:
        attributes[attribute.deployable_id].append(attribute)
    roots = _choose_roots(source.deployables, devices)
    deployables: dict[int, NewDeployable] = {}
    for row in source.deployables:
        device = devices.get(row.device_id)
        reason = _find_refusal(row, device, stored)
        if device is None or reason:
            notes.refuse(Table.DEPLOYABLES, row.uuid, reason)
            continue
        root = roots[row.device_id]
        deployables[row.id] = _convert(
            row, device, None if root is row else root, attributes[row.id], notes
        )
    return deployables


def _find_refusal(
    row: SourceDeployable, device: NewDevice | None, stored: StoredRows
) -> str:
    """Return why a deployable cannot be imported; empty: it can."""
    if device is None:
        return 'Its device is not imported.'
    is_stored = stored.has(Table.DEPLOYABLES, row.uuid)
    if not is_stored and row.rp_uuid in stored.rp_uuids:
        return f'Another deployable has its provider {row.rp_uuid} already.'
    return ''


def _choose_roots(
    deployables: Iterable[SourceDeployable], devices: Mapping[int, NewDevice]
) -> dict[int, SourceDeployable]:
    """Return the root of the tree of each device.

    Some drivers of Cyborg report several deployables without a parent for a device.
    The deployable that is named for the address of the device is the root, or else the
    first deployable.
    """
    roots: dict[int, SourceDeployable] = {}
    for row in deployables:
        device = devices.get(row.device_id)
        if device is None or row.parent_id is not None:
            continue
        roots.setdefault(row.device_id, row)
        if row.name.endswith(f'_{device.facts.control_address}'):
            roots[row.device_id] = row
    for row in deployables:
        roots.setdefault(row.device_id, row)
    return roots


def _convert(
    row: SourceDeployable,
    device: NewDevice,
    root: SourceDeployable | None,
    attributes: Iterable[SourceAttribute],
    notes: Notes,
) -> NewDeployable:
    """Return the deployable.

    :param root: None: the deployable is the root of its device
    """
    # Of two attributes with one key, the first is imported.
    values = {item.key: item.value for item in reversed(list(attributes))}
    resource_class = values.get(_CLASS_KEY)
    if resource_class is None:
        notes.change(
            Table.DEPLOYABLES,
            row.uuid,
            f'It has no attribute {_CLASS_KEY}, so it cannot be scheduled until the '
            'agent reports it.',
        )
    return NewDeployable(
        uuid=row.uuid,
        device_uuid=device.uuid,
        parent_uuid=root.uuid if root else None,
        root_uuid=root.uuid if root else None,
        name=row.name,
        rp_uuid=row.rp_uuid if resource_class else None,
        resource_class=resource_class,
        traits=tuple(
            value
            for key, value in reversed(values.items())
            if _TRAIT_KEY.fullmatch(key)
        ),
        total=row.num_accelerators,
        driver_name=(row.driver_name or '')[:64],
        bitstream_id=row.bitstream_id,
        created_at=notes.date(row.created_at),
    )


def convert_attributes(
    source: SourceDatabase, deployables: Mapping[int, NewDeployable], notes: Notes
) -> list[NewAttribute]:
    """Return the attributes that can be imported.

    :param deployables: the deployables that can be imported, by id
    """
    attributes: dict[tuple[int, str], NewAttribute] = {}
    for row in source.attributes:
        deployable = deployables.get(row.deployable_id)
        if deployable is None:
            notes.refuse(Table.ATTRIBUTES, row.uuid, 'Its deployable is not imported.')
        elif not row.key or len(row.key) > _MAX_KEY_LENGTH:
            reason = f'Its key must have 1 to {_MAX_KEY_LENGTH} characters.'
            notes.refuse(Table.ATTRIBUTES, row.uuid, reason)
        elif (row.deployable_id, row.key) in attributes:
            reason = f'Its deployable has another attribute {row.key}.'
            notes.refuse(Table.ATTRIBUTES, row.uuid, reason)
        else:
            is_reported = row.key == _CLASS_KEY or bool(_TRAIT_KEY.fullmatch(row.key))
            attributes[row.deployable_id, row.key] = NewAttribute(
                uuid=row.uuid,
                deployable_uuid=deployable.uuid,
                key=row.key,
                value=row.value,
                reported=is_reported,
                created_at=notes.date(row.created_at),
            )
    return list(attributes.values())


def check_providers(
    deployables: Iterable[NewDeployable],
    hosts: Mapping[str, str],
    cloud: CloudRows,
    notes: Notes,
) -> None:
    """Note the deployables that Placement does not have as the source says.

    :param hosts: host by uuid of a device
    """
    for row in deployables:
        if row.rp_uuid is not None and row.rp_uuid not in cloud.rp_uuids:
            reason = (
                f'Placement has no provider {row.rp_uuid}; the first sync of the host '
                'creates it.'
            )
            notes.change(Table.DEPLOYABLES, row.uuid, reason)
    for device_uuid, host in hosts.items():
        if host not in cloud.compute_nodes:
            reason = (
                f'Placement has no compute node {host}. The agent must use the name '
                'that nova-compute uses.'
            )
            notes.change(Table.DEVICES, device_uuid, reason)
