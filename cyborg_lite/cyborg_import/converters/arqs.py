# SPDX-License-Identifier: Apache-2.0
"""ARQs of Cyborg, and the handles that they own."""

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.plan import (
    CloudRows,
    NewArq,
    StoredRows,
    Table,
)
from cyborg_lite.cyborg_import.source_rows import SourceArq, SourceDatabase
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.profiles.device_profiles import DeviceProfile

_MAX_PROJECT_LENGTH: Final = 64
_WITH_INSTANCE: Final = frozenset({State.BOUND, State.BIND_FAILED})
_UNFINISHED: Final[Mapping[str, str]] = {
    'BindStarted': 'Cyborg had not finished its bind. Wait for the bind, or delete the '
    'server. Then undo this import, and import again.',
    'Deleting': 'Cyborg had not finished its deletion. Delete it in Cyborg, then '
    'import again.',
}


@dataclass(frozen=True, slots=True)
class ArqSources:
    """The data that the conversion of ARQs depends on."""

    profiles: Mapping[int, DeviceProfile]  # that can be imported, by id
    handles: Mapping[int, str]  # uuid of the handles that can be imported, by id
    stored: StoredRows
    cloud: CloudRows


def convert_arqs(
    source: SourceDatabase, sources: ArqSources, notes: Notes
) -> tuple[list[NewArq], dict[str, str]]:
    """Return the ARQs that can be imported, and the owners of handles.

    :returns: the ARQs, and the uuid of the ARQ that owns each handle, by uuid of the
        handle
    """
    arqs: list[NewArq] = []
    owners: dict[str, str] = {}
    slots: dict[str, int] = defaultdict(int)
    for row in source.arqs:
        reason = _find_refusal(row, sources, owners)
        if reason:
            notes.refuse(Table.ARQS, row.uuid, reason)
            continue
        slot = None
        if row.instance_uuid is not None and State(row.state) in _WITH_INSTANCE:
            slot = slots[row.instance_uuid]
            slots[row.instance_uuid] += 1
        arqs.append(_convert(row, sources.profiles[row.device_profile_id], slot, notes))
        handle = sources.handles.get(row.attach_handle_id or 0)
        if row.state == State.BOUND and handle is not None:
            owners[handle] = row.uuid
            _check_allocation(row, sources, notes)
    return arqs, owners


def _find_refusal(row: SourceArq, sources: ArqSources, owned: Container[str]) -> str:
    """Return why an ARQ cannot be imported; empty: it can."""
    reason = _UNFINISHED.get(row.state) or _find_invalid_value(row, sources.profiles)
    if reason or sources.stored.has(Table.ARQS, row.uuid):
        return reason
    if row.state not in _WITH_INSTANCE:
        return ''
    if row.instance_uuid in sources.stored.instances:
        return f'Server {row.instance_uuid} has other ARQs here.'
    if row.instance_uuid in (sources.cloud.missing_instances or ()):
        return (
            f'Nova has no server {row.instance_uuid}. Check the allocations of this '
            'consumer in Placement.'
        )
    return _find_handle_refusal(row, sources, owned) if row.state == State.BOUND else ''


def _find_invalid_value(row: SourceArq, profiles: Mapping[int, DeviceProfile]) -> str:
    """Return which value of an ARQ cannot be stored; empty: all can."""
    if row.state not in (State.INITIAL, State.UNBOUND, *_WITH_INSTANCE):
        return f'Its state {row.state} is unknown.'
    profile = profiles.get(row.device_profile_id)
    if profile is None:
        return 'Its device profile is not imported.'
    if not 0 <= row.device_profile_group_id < len(profile.groups):
        return f'Its device profile has no group {row.device_profile_group_id}.'
    if len(row.project_id or '') > _MAX_PROJECT_LENGTH:
        return f'Its project_id is longer than {_MAX_PROJECT_LENGTH} characters.'
    return ''


def _find_handle_refusal(
    row: SourceArq, sources: ArqSources, owned: Container[str]
) -> str:
    """Return why a bound ARQ cannot get its handle; empty: it can."""
    if not (row.hostname and row.device_rp_uuid and row.instance_uuid):
        return 'It is Bound without a server, host or provider.'
    if row.attach_handle_id is None:
        return 'It is Bound without an attach handle.'
    handle = sources.handles.get(row.attach_handle_id)
    if handle is None:
        return 'Its attach handle is not imported.'
    if handle in owned:
        return f'Another ARQ owns its attach handle {handle}.'
    if sources.stored.has(Table.HANDLES, handle):
        return (
            f'Its attach handle {handle} was imported before. Either no ARQ owned it '
            'then, or this service has released it since.'
        )
    return ''


def _convert(
    row: SourceArq, profile: DeviceProfile, slot: int | None, notes: Notes
) -> NewArq:
    has_instance = slot is not None
    return NewArq(
        uuid=row.uuid,
        state=State(row.state),
        profile_uuid=profile.uuid,
        profile_name=profile.name,
        group_id=row.device_profile_group_id,
        group=profile.groups[row.device_profile_group_id],
        project_id=row.project_id,
        hostname=row.hostname if has_instance else None,
        rp_uuid=row.device_rp_uuid if has_instance else None,
        instance_uuid=row.instance_uuid if has_instance else None,
        instance_slot=slot,
        created_at=notes.date(row.created_at),
    )


def _check_allocation(row: SourceArq, sources: ArqSources, notes: Notes) -> None:
    """Note an ARQ whose server has not allocated its provider."""
    allocations = sources.cloud.allocations.get(row.instance_uuid or '', frozenset())
    if row.device_rp_uuid not in allocations:
        reason = (
            f'Server {row.instance_uuid} has no allocation on provider '
            f'{row.device_rp_uuid} in Placement. The audit of the conductor reports '
            'such ARQs.'
        )
        notes.change(Table.ARQS, row.uuid, reason)
