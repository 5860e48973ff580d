# SPDX-License-Identifier: Apache-2.0
"""Inserts the rows of an import from OpenStack Cyborg, and deletes them again."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.cyborg_import.plan import (
    ImportNote,
    ImportPlan,
    NewArq,
    NewDeployable,
    NoteKind,
    StoredRows,
    Table,
)
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Attribute,
    Deployable,
    Device,
    DeviceProfile,
    DeviceProfileName,
    ProviderTraits,
)
from cyborg_lite.db.inventory.changes import DEVICE, HANDLE
from cyborg_lite.model.arqs.arqs import DEVICE_IN_USE_STATES, State
from cyborg_lite.model.profiles.device_profiles import Group
from cyborg_lite.model.providers.providers import valid_symbol

# Any: classes of `tables`, which have no common type with `uuid`.
_CLASSES: Final[Mapping[Table, Any]] = {
    Table.PROFILES: DeviceProfile,
    Table.DEVICES: Device,
    Table.DEPLOYABLES: Deployable,
    Table.ATTRIBUTES: Attribute,
    Table.ARQS: Arq,
    Table.HANDLES: AttachHandle,
}
_IMPORTED_STATES: Final = (
    State.INITIAL,
    State.BOUND,
    State.BIND_FAILED,
    State.UNBOUND,
)
_Rows = list[dict[str, Any]]  # columns of any type
_Ids = Mapping[str, int]  # primary keys by uuid


def read_stored_rows(session: Session) -> StoredRows:
    """Read what an import may conflict with."""
    names = session.execute(
        select(DeviceProfileName.name, DeviceProfile.uuid).join(DeviceProfile)
    ).all()
    current = session.execute(select(DeviceProfile.name, DeviceProfile.uuid)).all()
    devices = session.execute(select(Device.hostname, Device.hardware_id)).all()
    return StoredRows(
        uuids={
            table: frozenset(session.scalars(select(rows.uuid)))
            for table, rows in _CLASSES.items()
        },
        profile_names={row.name: row.uuid for row in (*names, *current)},
        hardware_ids=frozenset((host, hardware_id) for host, hardware_id in devices),
        rp_uuids=frozenset(
            uuid for uuid in session.scalars(select(Deployable.rp_uuid)) if uuid
        ),
        instances=frozenset(
            uuid for uuid in session.scalars(select(Arq.instance_uuid)) if uuid
        ),
    )


def insert_rows(session: Session, plan: ImportPlan) -> None:
    """Insert all rows of a plan. None of them may be stored already."""
    _insert(session, DeviceProfile, _profile_rows(plan))
    _insert(session, Device, _device_rows(plan))
    _insert_deployables(session, plan)
    deployables = _list_ids(session, Deployable)
    _insert(session, Attribute, _attribute_rows(plan, deployables))
    profiles = _list_ids(session, DeviceProfile)
    _insert(session, Arq, _arq_rows(plan, profiles))
    _insert(session, AttachHandle, _handle_rows(plan, deployables))


# --- rows -----------------------------------------------------------------------------


def _profile_rows(plan: ImportPlan) -> _Rows:
    return [
        {
            'uuid': row.uuid,
            'name': row.name,
            'description': row.description,
            'groups': [dict(group) for group in row.groups],
            'created_at': row.created_at,
        }
        for row in plan.profiles
    ]


def _device_rows(plan: ImportPlan) -> _Rows:
    return [
        {
            'uuid': row.uuid,
            'hostname': row.hostname,
            **DEVICE.write(row.facts),
            'status': row.status,
            'status_reason': row.status_reason,
            'created_at': row.created_at,
        }
        for row in plan.devices
    ]


def _insert_deployables(session: Session, plan: ImportPlan) -> None:
    """Insert the roots first: the others refer to them."""
    devices = _list_ids(session, Device)
    roots = [row for row in plan.deployables if row.root_uuid is None]
    _insert(session, Deployable, (_deployable_row(row, devices, {}) for row in roots))
    parents = _list_ids(session, Deployable)
    children = [row for row in plan.deployables if row.root_uuid is not None]
    rows = (_deployable_row(row, devices, parents) for row in children)
    _insert(session, Deployable, rows)
    # A later sync removes traits that drivers of this service do not report.
    published = [
        {
            'rp_uuid': row.rp_uuid,
            'traits': sorted({*map(valid_symbol, row.traits)}),
        }
        for row in plan.deployables
        if row.rp_uuid
    ]
    uuids = [row['rp_uuid'] for row in published]
    change(session, delete(ProviderTraits).where(ProviderTraits.rp_uuid.in_(uuids)))
    _insert(session, ProviderTraits, published)


def _deployable_row(row: NewDeployable, devices: _Ids, parents: _Ids) -> dict[str, Any]:
    return {
        'uuid': row.uuid,
        'device_id': devices[row.device_uuid],
        'parent_id': parents[row.parent_uuid] if row.parent_uuid else None,
        'root_id': parents[row.root_uuid] if row.root_uuid else None,
        'name': row.name,
        'resource_class': row.resource_class,
        'traits': list(row.traits),
        'num_accelerators': row.total,
        'rp_uuid': row.rp_uuid,
        'driver_name': row.driver_name,
        'bitstream_id': row.bitstream_id,
        'created_at': row.created_at,
    }


def _attribute_rows(plan: ImportPlan, deployables: _Ids) -> _Rows:
    return [
        {
            'uuid': row.uuid,
            'deployable_id': deployables[row.deployable_uuid],
            'key': row.key,
            'value': row.value,
            'reported': row.reported,
            'created_at': row.created_at,
        }
        for row in plan.attributes
    ]


def _arq_rows(plan: ImportPlan, profiles: _Ids) -> _Rows:
    by_deployable = {row.uuid: row.resource_class for row in plan.deployables}
    classes = {
        handle.arq_uuid: by_deployable[handle.deployable_uuid]
        for handle in plan.handles
        if handle.arq_uuid
    }
    return [
        _arq_row(row, profiles[row.profile_uuid], classes.get(row.uuid))
        for row in plan.arqs
    ]


def _arq_row(row: NewArq, profile_id: int, handle_class: str | None) -> dict[str, Any]:
    """Return the columns of an ARQ.

    :param handle_class: resource class of its attach handle; None: it has none
    """
    is_used = row.state in DEVICE_IN_USE_STATES
    if handle_class is None and not is_used:
        requested = Group.parse(row.group).requirements.resource_classes
        handle_class = next(iter(requested), '')
    return {
        'uuid': row.uuid,
        'state': row.state,
        'device_profile_id': profile_id,
        'device_profile_name': row.profile_name,
        'device_profile_group_id': row.group_id,
        'device_profile_group': dict(row.group),
        'project_id': row.project_id,
        'hostname': row.hostname,
        'device_rp_uuid': row.rp_uuid,
        'instance_uuid': row.instance_uuid,
        'instance_slot': row.instance_slot,
        # Empty: a companion has no unit.
        'resource_class': handle_class or '',
        'bound_at': int(row.created_at.timestamp() * 1000) if is_used else None,
        'created_at': row.created_at,
    }


def _handle_rows(plan: ImportPlan, deployables: _Ids) -> _Rows:
    return [
        {
            'uuid': row.uuid,
            'deployable_id': deployables[row.deployable_uuid],
            **HANDLE.write(row.facts),
            'arq_uuid': row.arq_uuid,
            'created_at': row.created_at,
        }
        for row in plan.handles
    ]


def _insert(session: Session, table: Any, rows: Iterable[dict[str, Any]]) -> None:
    values = list(rows)
    if values:
        # All rows of the statement have the same columns, including NULL.
        session.execute(insert(table), values, execution_options={'render_nulls': True})


def _list_ids(session: Session, table: Any) -> dict[str, int]:
    """Return the primary keys of all rows of a class of ``tables``, by uuid."""
    rows = session.execute(select(table.uuid, table.id))
    return {row.uuid: row.id for row in rows}


# --- undo -----------------------------------------------------------------------------


def delete_rows(
    session: Session, uuids: Mapping[Table, Collection[str]]
) -> tuple[dict[Table, int], tuple[ImportNote, ...]]:
    """Delete rows that an import has inserted.

    A row stays if a later row refers to it, or if a later bind has changed it.

    :param uuids: of the rows, by table
    :returns: the number of deleted rows by table, and a note for each row that stays
    """
    return _Undo(session, uuids).run()


class _Undo:
    """The deletion of imported rows, in the reverse order of their insertion."""

    def __init__(
        self, session: Session, uuids: Mapping[Table, Collection[str]]
    ) -> None:
        self._session = session
        self._uuids = uuids
        self._deleted: dict[Table, int] = {}
        self._notes: list[ImportNote] = []

    def run(self) -> tuple[dict[Table, int], tuple[ImportNote, ...]]:
        self._delete_arqs()
        self._delete(
            Table.HANDLES,
            AttachHandle.arq_uuid.is_not(None),
            'An ARQ that was not imported owns it.',
        )
        self._delete_deployables()
        self._delete(
            Table.DEVICES,
            Device.id.in_(select(Deployable.device_id)),
            'It has deployables that stay.',
        )
        self._delete(
            Table.PROFILES,
            DeviceProfile.id.in_(select(Arq.device_profile_id)),
            'An ARQ of the profile exists.',
        )
        return self._deleted, tuple(self._notes)

    def _delete_arqs(self) -> None:
        changed = (Arq.generation > 0) | Arq.state.not_in(_IMPORTED_STATES)
        imported = self._list(Table.ARQS)
        owned = select(Arq.uuid).where(Arq.uuid.in_(imported), ~changed)
        change(
            self._session,
            update(AttachHandle)
            .where(AttachHandle.arq_uuid.in_(owned))
            .values(arq_uuid=None),
        )
        reason = 'It was bound again or is being deleted since the import.'
        self._delete(Table.ARQS, changed, reason)

    def _delete_deployables(self) -> None:
        in_use = Deployable.id.in_(select(AttachHandle.deployable_id))
        imported = self._list(Table.DEPLOYABLES)
        removable = select(Deployable.id).where(Deployable.uuid.in_(imported), ~in_use)
        ids = self._session.scalars(removable).all()
        rp_uuids = self._session.scalars(
            select(Deployable.rp_uuid).where(Deployable.id.in_(ids))
        ).all()
        for table, column in (
            (Attribute, Attribute.deployable_id),
            (ProviderTraits, ProviderTraits.rp_uuid),
        ):
            values = ids if table is Attribute else rp_uuids
            change(self._session, delete(table).where(column.in_(values)))
        unlinked = {'parent_id': None, 'root_id': None}
        change(
            self._session,
            update(Deployable).where(Deployable.id.in_(ids)).values(**unlinked),
        )
        has_child = Deployable.id.in_(
            select(Deployable.parent_id).where(Deployable.parent_id.is_not(None))
        )
        self._delete(
            Table.DEPLOYABLES,
            in_use | has_child,
            'It has handles or deployables below it that were not imported. Stop the '
            'agent and run openstack accelerator host forget.',
        )

    def _list(self, table: Table) -> list[str]:
        return sorted(self._uuids.get(table, ()))

    # Any: SQL that is true for rows of the table.
    def _delete(self, table: Table, stays: Any, reason: str) -> None:
        rows = _CLASSES[table]
        imported = rows.uuid.in_(self._list(table))
        for uuid in self._session.scalars(select(rows.uuid).where(imported, stays)):
            self._notes.append(ImportNote(NoteKind.REFUSED, table, uuid, reason))
        ids = self._session.scalars(select(rows.id).where(imported, ~stays)).all()
        self._deleted[table] = change(
            self._session, delete(rows).where(rows.id.in_(ids))
        )
