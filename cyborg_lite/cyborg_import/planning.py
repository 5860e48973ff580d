# SPDX-License-Identifier: Apache-2.0
"""Planning of an import: which rows are inserted, and why others are not."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol, TypeVar

from cyborg_lite.cyborg_import.converters.arqs import ArqSources, convert_arqs
from cyborg_lite.cyborg_import.converters.deployables import (
    check_providers,
    convert_attributes,
    convert_deployables,
)
from cyborg_lite.cyborg_import.converters.devices import convert_devices
from cyborg_lite.cyborg_import.converters.handles import convert_handles
from cyborg_lite.cyborg_import.converters.profiles import convert_profiles
from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.plan import (
    CloudRows,
    ImportPlan,
    NewDeployable,
    NewHandle,
    StoredRows,
    Table,
)
from cyborg_lite.cyborg_import.source_rows import SourceDatabase, SourceHandle
from cyborg_lite.model.inventory.facts import HandleFacts

TESTED_REVISIONS: Final = {
    '4cc1d79978fc': 'Wallaby to 2023.1',
    '6c77bd6afea5': '2023.2 to 2026.1',
    'b47c8f2d1e3a': '2026.2',
}
"""Releases of Cyborg by the revision of their schema."""


class _Row(Protocol):
    """A row with a uuid."""

    @property
    def uuid(self) -> str:
        """The uuid of the row, in the source and here."""
        ...


Row = TypeVar('Row', bound=_Row)


def plan_import(
    source: SourceDatabase, stored: StoredRows, cloud: CloudRows, moment: datetime
) -> ImportPlan:
    """Return the rows to insert, with a note for each row that differs or is refused.

    :param moment: creation time of rows that have none
    """
    notes = Notes(moment)
    profiles = convert_profiles(source.profiles, stored, notes)
    devices = convert_devices(source, stored, notes)
    deployables = convert_deployables(source, devices, stored, notes)
    attributes = convert_attributes(source, deployables, notes)
    control = {device.uuid: device.facts.control_address for device in devices.values()}
    addresses = {id: control[row.device_uuid] for id, row in deployables.items()}
    handles = convert_handles(source.handles, addresses, notes)
    uuids = {id: row.uuid for id, (row, _facts) in handles.items()}
    sources = ArqSources(profiles, uuids, stored, cloud)
    arqs, owners = convert_arqs(source, sources, notes)
    hosts = {device.uuid: device.hostname for device in devices.values()}
    check_providers(deployables.values(), hosts, cloud, notes)
    new_handles = [
        _build_handle(pair, deployables[pair[0].deployable_id], owners, notes)
        for pair in handles.values()
    ]
    select = _Selection(stored)
    return ImportPlan(
        profiles=select.list_new(Table.PROFILES, profiles.values()),
        devices=select.list_new(Table.DEVICES, devices.values()),
        deployables=select.list_new(Table.DEPLOYABLES, deployables.values()),
        attributes=select.list_new(Table.ATTRIBUTES, attributes),
        arqs=select.list_new(Table.ARQS, arqs),
        handles=select.list_new(Table.HANDLES, new_handles),
        notes=tuple(
            note for note in notes.items if not stored.has(note.table, note.uuid)
        ),
        stored=select.counts,
    )


class _Selection:
    """Selects the rows that are not stored yet, and counts the others."""

    def __init__(self, stored: StoredRows) -> None:
        self._stored = stored
        self.counts: dict[Table, int] = {}

    def list_new(self, table: Table, rows: Iterable[Row]) -> tuple[Row, ...]:
        """Return the rows of a table that are not stored yet."""
        all_rows = tuple(rows)
        new = tuple(row for row in all_rows if not self._stored.has(table, row.uuid))
        self.counts[table] = len(all_rows) - len(new)
        return new


def _build_handle(
    pair: tuple[SourceHandle, HandleFacts],
    deployable: NewDeployable,
    owners: Mapping[str, str],
    notes: Notes,
) -> NewHandle:
    row, facts = pair
    owner = owners.get(row.uuid)
    if row.in_use and owner is None:
        reason = (
            'It is in use, but no imported ARQ owns it. No ARQ gets it until the agent '
            'reports the host.'
        )
        notes.change(Table.HANDLES, row.uuid, reason)
        facts = replace(facts, in_use=True)
    return NewHandle(
        uuid=row.uuid,
        deployable_uuid=deployable.uuid,
        facts=facts,
        arq_uuid=owner,
        created_at=notes.date(row.created_at),
    )
