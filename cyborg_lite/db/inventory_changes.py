# SPDX-License-Identifier: Apache-2.0
"""Changes of a host's inventory written to its rows: few statements, however many."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import NAMESPACE_DNS, uuid3, uuid4

from oslo_db.exception import RetryRequest
from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.inventory_rows import Ids
from cyborg_lite.db.tables import AttachHandle, Attribute, Deployable, Device
from cyborg_lite.exceptions import HandlesContended
from cyborg_lite.model.inventory_diff import Changes
from cyborg_lite.model.inventory_facts import (
    DeviceFacts,
    LeafPath,
    PartFacts,
    PartPath,
    UnitFacts,
)

_Rows = list[dict[str, Any]]  # columns of any type
# Rows of one statement must all name the same columns, the empty ones too.
_ALL_COLUMNS: Final = {'render_nulls': True}


def write(session: Session, hostname: str, changes: Changes, ids: Ids) -> None:
    """Make the rows what ``changes`` say; ``ids`` are those of what is there."""
    _Writer(session, hostname, changes, ids).write()


@dataclass(frozen=True, slots=True)
class _Writer:
    session: Session
    hostname: str
    changes: Changes
    ids: Ids  # grows with what is inserted

    def write(self) -> None:
        """What goes first makes room for the names and keys of what comes."""
        self._delete()
        self._write_devices()
        self._write_parts()
        self._write_units()
        self._write_attributes()

    # --- what goes ---

    def _delete(self) -> None:
        changes, ids = self.changes, self.ids
        self._delete_units([ids.units[path] for path in changes.units.gone])
        self._delete_attributes()
        parts = [ids.parts[path] for path in changes.parts.gone]
        if parts:
            # Nobody may go before those that point at it, not even within a statement.
            alone = {'parent_id': None, 'root_id': None}
            below = Deployable.parent_id.in_(parts)
            self._run(update(Deployable).where(below).values(**alone))
            self._run(delete(Deployable).where(Deployable.id.in_(parts)))
        devices = [ids.devices[identity] for identity in changes.devices.gone]
        if devices:
            self._run(delete(Device).where(Device.id.in_(devices)))

    def _delete_units(self, those: Collection[int]) -> None:
        if not those:
            return
        free = AttachHandle.id.in_(those), AttachHandle.arq_uuid.is_(None)
        self._settle(delete(AttachHandle).where(*free), len(those))

    def _delete_attributes(self) -> None:
        gone = self.changes.attributes.gone
        of_part = [self.ids.parts[path] for path in self.changes.parts.gone]
        # Of a part that goes all must go, whoever added them.
        single = [
            self.ids.attributes[path]
            for path in gone
            if path[:2] not in self.changes.parts.gone
        ]
        if of_part or single:
            those = or_(Attribute.deployable_id.in_(of_part), Attribute.id.in_(single))
            self._run(delete(Attribute).where(those))

    # --- what changes and what comes ---

    def _write_devices(self) -> None:
        delta = self.changes.devices
        self._update(
            Device,
            [
                {'id': self.ids.devices[identity], **_device(facts)}
                for identity, facts in delta.changed.items()
            ],
        )
        if not delta.new:
            return
        owner = {'hostname': self.hostname}
        self._insert(Device, ({**owner, **_device(f)} for f in delta.new.values()))
        mine = select(Device.hardware_id, Device.id)
        rows = self.session.execute(mine.where(Device.hostname == self.hostname))
        self.ids.devices.update((identity, number) for identity, number in rows)

    def _write_parts(self) -> None:
        waiting = dict(self.changes.parts.new)
        while waiting:
            # Parents first: a row must name the id of its parent.
            ready = {
                path: facts
                for path, facts in waiting.items()
                if facts.parent is None or (path[0], facts.parent) in self.ids.parts
            }
            self._insert_parts(ready)
            waiting = {path: f for path, f in waiting.items() if path not in ready}
        self._update(
            Deployable,
            [
                {'id': self.ids.parts[path], **self._part(path, facts)}
                for path, facts in self.changes.parts.changed.items()
            ],
        )

    def _insert_parts(self, parts: Mapping[PartPath, PartFacts]) -> None:
        names = self.changes.names
        rows = [
            {'device_id': self.ids.devices[path[0]], **self._part(path, facts)}
            for path, facts in parts.items()
        ]
        self._insert(Deployable, rows)
        by_name = {names[path]: path for path in parts}
        mine = select(Deployable.name, Deployable.id).join(Device)
        for name, number in self.session.execute(
            mine.where(Device.hostname == self.hostname)
        ):
            if name in by_name:
                self.ids.parts[by_name[name]] = number

    def _part(self, path: PartPath, facts: PartFacts) -> dict[str, Any]:
        below = facts.parent is not None
        name = self.changes.names[path]
        # The same after a lost database, and the one that users of Cyborg have.
        provider = str(uuid3(NAMESPACE_DNS, name)) if facts.resource_class else None
        return {
            'name': name,
            'rp_uuid': provider,
            'parent_id': self.ids.parts[path[0], facts.parent or ''] if below else None,
            'root_id': self.ids.parts[path[0], ''] if below else None,
            'resource_class': facts.resource_class,
            'traits': list(facts.traits),
            'num_accelerators': facts.total,
            'reserved': facts.reserved,
            'driver_name': facts.driver_name,
        }

    def _write_units(self) -> None:
        delta, ids = self.changes.units, self.ids.units
        lost = [ids[path] for path, unit in delta.changed.items() if unit.missing]
        if lost:
            held = AttachHandle.id.in_(lost), AttachHandle.arq_uuid.is_not(None)
            marked = update(AttachHandle).where(*held).values(missing=True)
            self._settle(marked, len(lost))
        there = {path: u for path, u in delta.changed.items() if not u.missing}
        self._update(
            AttachHandle,
            [{'id': ids[path], **_unit(facts)} for path, facts in there.items()],
        )
        rows = (
            {'deployable_id': self.ids.parts[path[:2]], **_unit(facts)}
            for path, facts in delta.new.items()
        )
        self._insert(AttachHandle, rows)

    def _write_attributes(self) -> None:
        delta = self.changes.attributes
        known = {**self.ids.added, **self.ids.attributes}
        new: dict[LeafPath, str] = {
            p: v for p, v in delta.new.items() if p not in known
        }
        there = {p: v for p, v in {**delta.new, **delta.changed}.items() if p in known}
        self._update(
            Attribute,
            [
                {'id': known[path], 'value': value, 'reported': True}
                for path, value in there.items()
            ],
        )
        rows = (
            {
                'deployable_id': self.ids.parts[path[:2]],
                'key': path[2],
                'value': value,
                'reported': True,
            }
            for path, value in new.items()
        )
        self._insert(Attribute, rows)

    # --- statements ---

    def _insert(self, table: Any, rows: Iterable[dict[str, Any]]) -> None:
        """Any: a class of `tables`; each of its rows gets a uuid."""
        values: _Rows = [{'uuid': str(uuid4()), **row} for row in rows]
        if values:
            self.session.execute(insert(table), values, execution_options=_ALL_COLUMNS)

    def _update(self, table: Any, rows: _Rows) -> None:
        """Any: a class of `tables`; the rows name their ``id``."""
        if rows:
            self.session.execute(update(table), rows)

    def _run(self, statement: Any) -> None:
        change(self.session, statement)

    def _settle(self, statement: Any, expected: int) -> None:
        """A bind or a release was faster: begin again with what is true now."""
        if change(self.session, statement) != expected:
            raise RetryRequest(HandlesContended())


def _device(facts: DeviceFacts) -> dict[str, Any]:
    return {
        'type': facts.type,
        'vendor': facts.vendor,
        'model': facts.model,
        'driver': facts.driver,
        'address': facts.address,
        'hardware_id': facts.hardware_id,
        'std_board_info': dict(facts.std_board_info),
        'vendor_board_info': facts.vendor_board_info,
        'health': facts.health,
        'health_reason': facts.health_reason,
    }


def _unit(facts: UnitFacts) -> dict[str, Any]:
    return {
        'key': facts.key,
        'type': facts.type,
        'info': dict(facts.info),
        'needs_host': facts.needs_host,
        'managed': facts.managed,
        'in_use': facts.in_use,
        'missing': facts.missing,
    }
