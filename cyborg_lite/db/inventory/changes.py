# SPDX-License-Identifier: Apache-2.0
"""Reads the inventory of a host, and writes its changes, in few statements.

The stored inventory is read as a flat layout, with the primary keys of its rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import NAMESPACE_DNS, uuid3, uuid4

from oslo_db.exception import RetryRequest
from sqlalchemy import delete, func, insert, not_, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.core.change import change, value_by_row
from cyborg_lite.db.core.column_types import read_attributes
from cyborg_lite.db.core.records import AnyRow, From, Record
from cyborg_lite.db.core.tables import AttachHandle, Attribute, Deployable, Device, now
from cyborg_lite.db.inventory import device_events
from cyborg_lite.db.inventory.handles import HELD
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.arqs import HandlesContended
from cyborg_lite.model.devices.cleaning import CleanState
from cyborg_lite.model.devices.devices import NEW_DEVICE_REASON, DeviceStatus
from cyborg_lite.model.devices.events import DeviceEventKind
from cyborg_lite.model.inventory import host_report
from cyborg_lite.model.inventory.diff import InventoryChanges
from cyborg_lite.model.inventory.facts import (
    NO_DEPLOYABLES,
    DeployableFacts,
    DeployablePath,
    HandleFacts,
    Layout,
    LeafPath,
    StoredInventory,
    name_suffix,
)
from cyborg_lite.model.inventory.host_report import CleaningPolicy

DEVICE: Final = Record(
    host_report.Device,
    Device,
    root=From(lambda: NO_DEPLOYABLES),
    std_board_info=From(lambda info: info or {}, Device.std_board_info),
)
_DEPLOYABLE: Final = Record(
    DeployableFacts,
    Deployable,
    total=Deployable.num_accelerators,
    driver_name=func.coalesce(Deployable.driver_name, ''),
    typed_attributes=From(read_attributes, Deployable.typed_attributes),
)
HANDLE: Final = Record(HandleFacts, AttachHandle)
_HANDLES: Final = (
    HANDLE.select(
        AttachHandle.deployable_id, AttachHandle.arq_uuid, AttachHandle.clean_state
    )
    .join(Deployable, AttachHandle.deployable_id == Deployable.id)
    .join(Device, Deployable.device_id == Device.id)
    .order_by(AttachHandle.id)
)
_ATTRIBUTES: Final = (
    select(
        Attribute.id.label('row_id'),
        Attribute.deployable_id,
        Attribute.key,
        Attribute.value,
        Attribute.reported,
        Attribute.hidden,
    )
    .join(Deployable, Attribute.deployable_id == Deployable.id)
    .join(Device, Deployable.device_id == Device.id)
    .order_by(Attribute.id)
)


@dataclass(frozen=True, slots=True)
class RowIds:
    """Primary keys of the rows of a host, by path, and the health of its devices."""

    devices: dict[str, int] = field(default_factory=dict)
    health: dict[str, str] = field(default_factory=dict)
    deployables: dict[DeployablePath, int] = field(default_factory=dict)
    handles: dict[LeafPath, int] = field(default_factory=dict)
    attributes: dict[LeafPath, int] = field(default_factory=dict)
    # Attributes that an admin has added; reports do not contain them.
    admin_attributes: dict[LeafPath, int] = field(default_factory=dict)


def load_inventory(session: Session, hostname: str) -> tuple[StoredInventory, RowIds]:
    """Read the inventory of a host, in four SELECTs; in one if the host is new."""
    on_host = Device.hostname == hostname
    statement = DEVICE.select().where(on_host).order_by(Device.id)
    devices = session.execute(statement).all()
    if not devices:
        return StoredInventory(Layout({}, {}, {}, {}), {}, frozenset()), RowIds()
    statement = _DEPLOYABLE.select(Deployable.device_id, Deployable.name)
    statement = statement.add_columns(Deployable.parent_id)
    statement = statement.join(Device).where(on_host).order_by(Deployable.id)
    deployables = session.execute(statement).all()
    handles = session.execute(_HANDLES.where(on_host)).all()
    attributes = session.execute(_ATTRIBUTES.where(on_host)).all()
    paths = _paths(devices, deployables)
    return _inventory(devices, deployables, handles, attributes, paths)


def _paths(
    devices: Sequence[AnyRow], deployables: Sequence[AnyRow]
) -> dict[int, DeployablePath]:
    """Return the path of each deployable, by its id."""
    identities = {device.row_id: device.hardware_id for device in devices}
    roots = {row.device_id: row.name for row in deployables if not row.parent_id}
    return {
        row.row_id: (
            identities[row.device_id],
            name_suffix(row.name, roots[row.device_id]),
        )
        for row in deployables
    }


def _inventory(
    devices: Sequence[AnyRow],
    deployables: Sequence[AnyRow],
    handles: Sequence[AnyRow],
    attributes: Sequence[AnyRow],
    paths: dict[int, DeployablePath],
) -> tuple[StoredInventory, RowIds]:
    def leaf(row: AnyRow) -> LeafPath:
        """Return the path of a handle or an attribute."""
        return (*paths[row.deployable_id], row.key)

    layout = Layout(
        devices={row.hardware_id: DEVICE.read(row) for row in devices},
        deployables={
            paths[row.row_id]: _DEPLOYABLE.read(
                row, parent=paths[row.parent_id][1] if row.parent_id else None
            )
            for row in deployables
        },
        handles={leaf(row): HANDLE.read(row) for row in handles},
        attributes={
            leaf(row): row.value
            for row in attributes
            if row.reported and not row.hidden
        },
    )
    ids = RowIds(
        devices={row.hardware_id: row.row_id for row in devices},
        health={row.hardware_id: row.health for row in devices},
        deployables={path: number for number, path in paths.items()},
        handles={leaf(row): row.row_id for row in handles},
        attributes={leaf(row): row.row_id for row in attributes if row.reported},
        admin_attributes={
            leaf(row): row.row_id for row in attributes if not row.reported
        },
    )
    names = {paths[row.row_id]: row.name for row in deployables}
    # A unit that leaves the host while it is not clean must stay known.
    claimed = frozenset(
        leaf(row)
        for row in handles
        if row.arq_uuid or row.clean_state != CleanState.CLEAN
    )
    hidden = frozenset(leaf(row) for row in attributes if row.hidden)
    return StoredInventory(layout, names, claimed, hidden), ids


_Rows = list[dict[str, Any]]  # columns of any type


def write_changes(
    session: Session,
    hostname: str,
    changes: InventoryChanges,
    ids: RowIds,
    new_status: DeviceStatus = DeviceStatus.ENABLED,
) -> None:
    """Apply ``changes`` to the rows of a host.

    :param ids: the primary keys of the rows before the changes
    :param new_status: status of the devices that are inserted
    :raises RetryRequest: a concurrent bind or release changed a handle
    """
    _Writer(session, hostname, changes, ids, new_status).write()


@dataclass(frozen=True, slots=True)
class _Writer:
    session: Session
    hostname: str
    changes: InventoryChanges
    ids: RowIds  # extended with the rows that are inserted
    new_status: DeviceStatus

    def write(self) -> None:
        """Delete first, because new rows may reuse names and keys of deleted ones."""
        self._delete()
        self._write_devices()
        self._write_deployables()
        self._write_handles()
        self._write_attributes()

    # --- deletion ---

    def _delete(self) -> None:
        changes, ids = self.changes, self.ids
        handles = [ids.handles[path] for path in changes.handles.removed]
        if handles:
            unclaimed = AttachHandle.id.in_(handles), not_(HELD)
            self._run_or_retry(delete(AttachHandle).where(*unclaimed), len(handles))
        self._delete_attributes()
        deployables = [ids.deployables[path] for path in changes.deployables.removed]
        if deployables:
            # Databases check foreign keys after each row, so references between the
            # deleted rows go first.
            unlinked = {'parent_id': None, 'root_id': None}
            children = Deployable.parent_id.in_(deployables)
            change(self.session, update(Deployable).where(children).values(**unlinked))
            removed = Deployable.id.in_(deployables)
            change(self.session, delete(Deployable).where(removed))
        devices = [ids.devices[identity] for identity in changes.devices.removed]
        if devices:
            removed = Device.id.in_(devices)
            device_events.add_events(self.session, removed, DeviceEventKind.REMOVED)
            change(self.session, delete(Device).where(removed))

    def _delete_attributes(self) -> None:
        deployables = [
            self.ids.deployables[path] for path in self.changes.deployables.removed
        ]
        # With a deployable all its attributes go, including those of admins.
        single = [
            self.ids.attributes[path]
            for path in self.changes.attributes.removed
            if path[:2] not in self.changes.deployables.removed
        ]
        if deployables or single:
            deleted = or_(
                Attribute.deployable_id.in_(deployables), Attribute.id.in_(single)
            )
            change(self.session, delete(Attribute).where(deleted))

    # --- updates and inserts ---

    def _write_devices(self) -> None:
        delta = self.changes.devices
        self._record_health(delta.changed)
        self._update(
            Device,
            [
                {'id': self.ids.devices[identity], **DEVICE.write(facts)}
                for identity, facts in delta.changed.items()
            ],
        )
        if not delta.new:
            return
        is_held = self.new_status is DeviceStatus.MAINTAINING
        owner = {
            'health_since': now(),
            'hostname': self.hostname,
            'status': self.new_status,
            'status_reason': NEW_DEVICE_REASON if is_held else '',
        }
        self._insert(
            Device,
            ({**owner, **DEVICE.write(facts)} for facts in delta.new.values()),
        )
        rows = self.session.execute(
            select(Device.hardware_id, Device.id).where(
                Device.hostname == self.hostname
            )
        )
        self.ids.devices.update((identity, number) for identity, number in rows)
        added = Device.id.in_([self.ids.devices[identity] for identity in delta.new])
        details = {'value': Device.health, 'reason': Device.health_reason}
        kind = DeviceEventKind.ADDED
        device_events.add_events(self.session, added, kind, **details)
        if any(item.hardware_id != item.control_address for item in delta.new.values()):
            device_events.restore_quarantines(self.session, added)

    def _record_health(self, changed: Mapping[str, host_report.Device]) -> None:
        """Store the devices whose health changes; call it before the change."""
        facts = {
            self.ids.devices[identity]: item
            for identity, item in changed.items()
            if item.health != self.ids.health[identity]
        }
        if not facts:
            return
        health, reason = (
            value_by_row(Device.id, {n: getattr(f, name) for n, f in facts.items()})
            for name in ('health', 'health_reason')
        )
        differing = Device.id.in_(facts)
        device_events.add_health_changes(self.session, differing, health, reason)

    def _write_deployables(self) -> None:
        pending = dict(self.changes.deployables.new)
        while pending:
            # Parents first, because a row contains the id of its parent.
            insertable = {
                path: facts
                for path, facts in pending.items()
                if facts.parent is None
                or (path[0], facts.parent) in self.ids.deployables
            }
            self._insert_deployables(insertable)
            pending = {p: facts for p, facts in pending.items() if p not in insertable}
        self._update(
            Deployable,
            [
                {
                    'id': self.ids.deployables[path],
                    **self._deployable_row(path, facts),
                }
                for path, facts in self.changes.deployables.changed.items()
            ],
        )

    def _insert_deployables(
        self, deployables: Mapping[DeployablePath, DeployableFacts]
    ) -> None:
        names = self.changes.names
        rows = [
            {
                'device_id': self.ids.devices[path[0]],
                **self._deployable_row(path, facts),
            }
            for path, facts in deployables.items()
        ]
        self._insert(Deployable, rows)
        path_by_name = {names[path]: path for path in deployables}
        stored = select(Deployable.name, Deployable.id).join(Device)
        for name, number in self.session.execute(
            stored.where(Device.hostname == self.hostname)
        ):
            if name in path_by_name:
                self.ids.deployables[path_by_name[name]] = number

    def _deployable_row(
        self, path: DeployablePath, facts: DeployableFacts
    ) -> dict[str, Any]:
        is_child = facts.parent is not None
        parents = self.ids.deployables
        name = self.changes.names[path]
        # Derived from the name, as in OpenStack Cyborg: a rebuilt database and an
        # existing Placement get the same uuid.
        provider = str(uuid3(NAMESPACE_DNS, name)) if facts.resource_class else None
        return {
            'name': name,
            'rp_uuid': provider,
            'parent_id': parents[path[0], facts.parent or ''] if is_child else None,
            'root_id': parents[path[0], ''] if is_child else None,
            **_DEPLOYABLE.write(facts),
            'num_accelerators': facts.total,
            'typed_attributes': codec.dump(facts.typed_attributes) or None,
        }

    def _write_handles(self) -> None:
        delta, ids = self.changes.handles, self.ids.handles
        missing_ids = [
            ids[path] for path, handle in delta.changed.items() if handle.missing
        ]
        if missing_ids:
            claimed = AttachHandle.id.in_(missing_ids), HELD
            marked = update(AttachHandle).where(*claimed).values(missing=True)
            self._run_or_retry(marked, len(missing_ids))
        present = {path: f for path, f in delta.changed.items() if not f.missing}
        self._update(
            AttachHandle,
            [
                {'id': ids[path], **HANDLE.write(facts)}
                for path, facts in present.items()
            ],
        )
        self._insert_handles(delta.new)

    def _insert_handles(self, handles: Mapping[LeafPath, HandleFacts]) -> None:
        """Insert handles, and the jobs for units to clean before their first use."""
        rows = [
            {
                'uuid': str(uuid4()),
                'deployable_id': self.ids.deployables[path[:2]],
                'clean_state': _first_state(facts),
                **HANDLE.write(facts),
            }
            for path, facts in handles.items()
        ]
        self._insert(AttachHandle, rows)
        for row in rows:
            if row['clean_state'] != CleanState.CLEAN:
                job = queue.clean_job(row['uuid'], self.hostname)
                queue.add_job(self.session, job)

    def _write_attributes(self) -> None:
        delta = self.changes.attributes
        stored = {**self.ids.admin_attributes, **self.ids.attributes}
        new: dict[LeafPath, str] = {
            path: value for path, value in delta.new.items() if path not in stored
        }
        changed = {
            path: value
            for path, value in {**delta.new, **delta.changed}.items()
            if path in stored
        }
        self._update(
            Attribute,
            [
                {'id': stored[path], 'value': value, 'reported': True}
                for path, value in changed.items()
            ],
        )
        rows = (
            {
                'deployable_id': self.ids.deployables[path[:2]],
                'key': path[2],
                'value': value,
                'reported': True,
            }
            for path, value in new.items()
        )
        self._insert(Attribute, rows)

    # --- statements ---

    def _insert(self, table: Any, rows: Iterable[dict[str, Any]]) -> None:
        """Insert rows of a class of ``tables``; each row gets a uuid."""
        values: _Rows = [{'uuid': str(uuid4()), **row} for row in rows]
        if values:
            change(self.session, insert(table), values)

    def _update(self, table: Any, rows: _Rows) -> None:
        """Update rows of a class of ``tables``; each row contains its ``id``."""
        if rows:
            self.session.execute(update(table), rows)

    def _run_or_retry(self, statement: Any, expected: int) -> None:
        """Run a statement; retry the transaction if it matched fewer rows.

        A bind or release has changed a handle since the inventory was read.
        """
        if change(self.session, statement) != expected:
            raise RetryRequest(HandlesContended())


def _first_state(facts: HandleFacts) -> CleanState:
    always = facts.cleaning is CleaningPolicy.ALWAYS
    return CleanState.DIRTY if always else CleanState.CLEAN
