# SPDX-License-Identifier: Apache-2.0
"""Attach handles of Cyborg.

The key of each handle is that which a driver of this service reports for the same unit.
The uuid is kept: the mdev of a vGPU has the uuid of its handle.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from cyborg_lite.cyborg_import.notes import (
    Notes,
    format_address,
    normalize_address,
    parse_object,
)
from cyborg_lite.cyborg_import.plan import Table
from cyborg_lite.cyborg_import.source_rows import SourceHandle
from cyborg_lite.model.inventory.facts import HandleFacts
from cyborg_lite.model.inventory.host_report import HandleType

_TYPES: Final = frozenset(str(handle_type) for handle_type in HandleType)


def convert_handles(
    rows: Iterable[SourceHandle], addresses: Mapping[int, str], notes: Notes
) -> dict[int, tuple[SourceHandle, HandleFacts]]:
    """Return the handles that can be imported, by id in the source.

    :param addresses: control address of the device of each deployable that can be
        imported, by id of the deployable
    """
    handles: dict[int, tuple[SourceHandle, HandleFacts]] = {}
    keys: set[tuple[int, str]] = set()
    for row in rows:
        if row.deployable_id not in addresses:
            notes.refuse(Table.HANDLES, row.uuid, 'Its deployable is not imported.')
            continue
        facts = _read_facts(row, addresses[row.deployable_id])
        if facts is None:
            reason = f'Its attach_info is not valid for the type {row.attach_type}.'
            notes.refuse(Table.HANDLES, row.uuid, reason)
        elif (row.deployable_id, facts.key) in keys:
            reason = f'Another handle of its deployable is at {facts.key}.'
            notes.refuse(Table.HANDLES, row.uuid, reason)
        else:
            keys.add((row.deployable_id, facts.key))
            handles[row.id] = row, facts
    return handles


def _read_facts(row: SourceHandle, control_address: str) -> HandleFacts | None:
    """Return the values of a handle, or None if they cannot be read."""
    info = parse_object(row.attach_info)
    fields = normalize_address(info)
    if fields is None or row.attach_type not in _TYPES:
        return None
    handle_type = HandleType(row.attach_type)
    address = format_address(fields)
    key = address
    if handle_type is HandleType.MDEV:
        key = _mdev_key(info, address, is_card=address == control_address)
    return HandleFacts(
        key=key,
        type=handle_type,
        info={**info, **fields},
        needs_host=handle_type is HandleType.MDEV,
        managed=info.get('managed') != 'false',
        in_use=False,
    )


def _mdev_key(info: Mapping[str, str], address: str, *, is_card: bool) -> str:
    """Return the key of a vGPU.

    :param is_card: the parent is the card, which has several vGPUs; otherwise it is a
        virtual function, which has one
    """
    key = f'{address}/{info.get("asked_type", "")}'
    number = info.get('vgpu_mark', '').rpartition('_')[2]
    return f'{key}/{number}' if is_card and number.isdecimal() else key
