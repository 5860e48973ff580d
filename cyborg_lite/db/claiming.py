# SPDX-License-Identifier: Apache-2.0
"""Choosing and locking free handles, so that no two binds are given the same one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Row, Select, and_, bindparam, func, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import jobs
from cyborg_lite.db.change import change, for_each
from cyborg_lite.db.handles import FREE, unclean
from cyborg_lite.db.providers import sync_job
from cyborg_lite.db.services import agent_of
from cyborg_lite.db.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    Service,
)
from cyborg_lite.exceptions import BindCancelled, HandlesContended, NoFreeHandle
from cyborg_lite.model import bitstream_choice
from cyborg_lite.model.arqs import State
from cyborg_lite.model.device_profiles import handle_count
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.services import ServiceState

_TARGETS: Final = (
    select(
        Arq.uuid,
        Arq.state,
        Arq.device_rp_uuid,
        Arq.device_profile_group,
        Arq.device_profile_group_id,
        Deployable.id.label('deployable_id'),
        Deployable.name,
        Deployable.num_accelerators,
        Device.health,
        AttachHandle.id.label('unclean'),
        Service.host,
        Service.state.label('agent'),
        LoadedRegion.unusable,
    )
    .outerjoin(Deployable, Deployable.rp_uuid == Arq.device_rp_uuid)
    .outerjoin(Device, Deployable.device_id == Device.id)
    .outerjoin(Service, agent_of(Device.hostname))
    .outerjoin(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
    .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
    .where(Arq.uuid.in_(bindparam('uuids')))
    .order_by(Arq.id)
)
# SQLite knows no row locks: there a write transaction is alone from its start.
_ALL_FREE: Final = (
    select(AttachHandle.id, AttachHandle.deployable_id, AttachHandle.needs_host)
    .where(AttachHandle.deployable_id.in_(bindparam('deployables')), FREE)
    .order_by(AttachHandle.id)
    .with_for_update(skip_locked=True)
)
_SOME_FREE: Final = _ALL_FREE.limit(bindparam('number'))
_TAKE: Final = (
    update(AttachHandle)
    .where(AttachHandle.id.in_(bindparam('ids')), FREE)
    .values(preparing=AttachHandle.needs_host, turn=AttachHandle.turn + 1)
)


def claim_handles(session: Session, uuids: Sequence[str]) -> bool:
    """Give a free handle to each request; True: its host must prepare one of them.

    Where two requests stand for one unit the second is the companion and gets none.

    :raises BindCancelled: a request is not being bound any more
    :raises NoFreeHandle: the provider is unknown, gone or exhausted
    :raises HandlesContended: enough will be free, but not at this moment
    """
    targets = _targets(session, uuids)
    handles = _free_handles(session, _with_handle(targets))
    _take(session, handles)
    # What is free on a silent host is reserved, and this is not free any more.
    for hostname in {one.silent_host for one in targets if one.silent_host}:
        jobs.add(session, sync_job(hostname))
    on_host = any(handle.needs_host for handle in handles.values())
    return on_host or any(target.loads for target in targets)


@dataclass(frozen=True, slots=True)
class _Target:
    """A request that is being bound, and the deployable that Nova chose for it."""

    arq_uuid: str
    rp_uuid: str
    deployable_id: int
    capacity: int
    silent_host: str | None  # None: the agent of its host is there
    group_id: int
    group: Mapping[str, str]

    @property
    def loads(self) -> bool:
        """Whether it names a bitstream, for its host to load."""
        return bitstream_choice.names_one(self.group)


@dataclass(frozen=True, slots=True)
class _Free:
    """A handle that is locked for us."""

    id: int
    deployable_id: int
    needs_host: bool


def _targets(session: Session, uuids: Sequence[str]) -> tuple[_Target, ...]:
    rows = session.execute(_TARGETS, {'uuids': uuids}).all()
    if len(rows) < len(uuids) or any(row.state != State.BIND_STARTED for row in rows):
        raise BindCancelled()
    if any(row.unclean is not None for row in rows):
        # Bound anew while its host still cleans the device of the time before.
        raise HandlesContended()
    return tuple(_target(row) for row in rows)


def _target(row: Row[*tuple[Any, ...]]) -> _Target:
    # The columns are those of the select above.
    if row.deployable_id is None:
        reason = f'No device of ours is resource provider {row.device_rp_uuid}.'
        raise NoFreeHandle(reason=reason)
    if row.health == Health.GONE:
        raise NoFreeHandle(reason=f'The device of {row.name} is gone.')
    if row.unusable:
        reason = f'{row.name} is not usable: {row.unusable}'
        raise NoFreeHandle(reason=reason)
    return _Target(
        row.uuid,
        row.device_rp_uuid,
        row.deployable_id,
        row.num_accelerators,
        silent_host=row.host if row.agent == ServiceState.DOWN else None,
        group_id=row.device_profile_group_id,
        group=row.device_profile_group,
    )


def _with_handle(targets: Sequence[_Target]) -> tuple[_Target, ...]:
    """Those that get a handle of their own, the oldest of each group first."""
    together: dict[tuple[int, int], list[_Target]] = defaultdict(list)
    for target in targets:
        together[target.deployable_id, target.group_id].append(target)
    return tuple(
        target
        for those in together.values()
        for target in those[: handle_count(those[0].group, len(those))]
    )


def _free_handles(session: Session, targets: Sequence[_Target]) -> dict[str, _Free]:
    """A free handle, locked, for each request."""
    wanting: dict[int, list[_Target]] = defaultdict(list)
    for target in targets:
        wanting[target.deployable_id].append(target)
    # Of small deployables, whole cards above all, every handle is wanted: one select
    # serves them all. A large one must not be locked whole: it has other customers.
    whole = [key for key, those in wanting.items() if those[0].capacity <= len(those)]
    wanted = {key: len(those) for key, those in wanting.items()}
    found = _locked(session, _ALL_FREE, deployables=whole) if whole else []
    for key in wanting.keys() - set(whole):
        found += _locked(session, _SOME_FREE, deployables=[key], number=wanted[key])
    handles: dict[str, _Free] = {}
    for handle in found:
        if wanting[handle.deployable_id]:
            handles[wanting[handle.deployable_id].pop().arq_uuid] = handle
    for key, left in wanting.items():
        if left:
            _explain_shortage(session, left[0], wanted[key])
    return handles


def _locked(
    session: Session,
    free: Select[int, int, bool],
    **values: object,  # its parameters
) -> list[_Free]:
    return [_Free(*row) for row in session.execute(free, values)]


def _explain_shortage(session: Session, target: _Target, wanted: int) -> None:
    """Too few found is not yet too few there.

    Others may hold locks and roll back, and what a host cleans is free in a moment.
    """
    being_cleaned = and_(unclean(), AttachHandle.missing.is_(False))
    being_loaded = and_(
        AttachHandle.arq_uuid.is_(None),
        AttachHandle.preparing.is_(True),
        AttachHandle.missing.is_(False),
    )
    there = (
        select(func.count())
        .select_from(AttachHandle)
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .where(AttachHandle.deployable_id == target.deployable_id)
        .where(or_(FREE, being_cleaned, being_loaded))
    )
    if (session.scalar(there) or 0) >= wanted:
        raise HandlesContended()
    reason = f'No free accelerator is left on resource provider {target.rp_uuid}.'
    raise NoFreeHandle(reason=reason)


def _take(session: Session, handles: Mapping[str, _Free]) -> None:
    owners = {handle.id: uuid for uuid, handle in handles.items()}
    statement, alike = for_each(_TAKE, AttachHandle.id, {'arq_uuid': owners})
    if change(session, statement, {**alike, 'ids': list(owners)}) != len(owners):
        raise HandlesContended()
