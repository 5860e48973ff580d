# SPDX-License-Identifier: Apache-2.0
"""Attach handles that hosts have prepared, although no ARQ owns them.

A database that was restored from a backup does not know the ARQs of later binds. Such a
handle is occupied until its host no longer has it: no ARQ can claim it, and its unit is
reserved in Placement.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Update, and_, case, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import (
    Allocation,
    Arq,
    AttachHandle,
    Deployable,
    Device,
)
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.ownership.allocations import IS_UNOWNED
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.cleaning import (
    CONDUCTOR_ACTOR,
    CleanState,
    state_after_use,
)
from cyborg_lite.model.hosts.events import HostHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy

_OCCUPIED: Final = and_(
    AttachHandle.arq_uuid.is_(None), AttachHandle.clean_state == CleanState.OCCUPIED
)

# Milliseconds. A host may describe its handles just before it prepares one.
_GRACE: Final = 60_000
_MUST_BE_PREPARED: Final = and_(
    AttachHandle.needs_host.is_(True),
    AttachHandle.preparing.is_(False),
    AttachHandle.arq_uuid.in_(
        select(Arq.uuid).where(
            Arq.state == State.BOUND, Arq.bound_at < now_ms() - _GRACE
        )
    ),
)


@dataclass(frozen=True, slots=True)
class HandleRow:
    """A stored attach handle, as far as it is compared with a prepared one."""

    uuid: str
    key: str
    deployable_name: str
    rp_uuid: str | None  # None: its deployable cannot be scheduled
    arq_uuid: str | None  # None: no ARQ owns it
    is_occupied: bool

    @property
    def is_claimed(self) -> bool:
        """Return True if an ARQ owns the handle."""
        return self.arq_uuid is not None


def list_compared(
    session: Session, host: str, uuids: Collection[str]
) -> tuple[HandleRow, ...]:
    """Return the handles of a host with the uuids, and all others that concern it.

    They are occupied, or bound ARQs own them and the host must have prepared them.
    """
    # A recovery has withheld units that no host prepares.
    occupied = and_(_OCCUPIED, AttachHandle.needs_host.is_(True))
    compared = or_(AttachHandle.uuid.in_(uuids), occupied, _MUST_BE_PREPARED)
    return _list_handles(session, host, compared)


def list_by_keys(
    session: Session, host: str, keys: Collection[str]
) -> tuple[HandleRow, ...]:
    """Return the handles of a host with the keys, whose uuids the host does not know.

    A database that is older than the first report of a device gives its handles other
    uuids.
    """
    return _list_handles(session, host, AttachHandle.key.in_(keys))


_HANDLE: Final = Record(
    HandleRow,
    AttachHandle,
    Deployable,
    deployable_name=Deployable.name,
    is_occupied=_OCCUPIED,
)


def _list_handles(
    session: Session, host: str, condition: ColumnElement[bool]
) -> tuple[HandleRow, ...]:
    statement = (
        _HANDLE.select()
        .select_from(AttachHandle)
        .join(Deployable, AttachHandle.deployable_id == Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .where(Device.hostname == host, condition)
        .order_by(AttachHandle.id)
    )
    return _HANDLE.list(session, statement)


def occupy(
    session: Session, host: str, handles: Mapping[str, HostHandle]
) -> frozenset[str]:
    """Mark handles as occupied, unless an ARQ has claimed them meanwhile.

    The handle generation does not fall behind that of the host. Otherwise the host
    would ignore the calls of the next bind.

    :param handles: by uuid of the stored handle
    :returns: uuids of the stored handles that no ARQ owns
    """
    occupied = {
        uuid
        for uuid, handle in sorted(handles.items())
        if change(session, _occupy(uuid, handle))
    }
    if occupied:
        queue.add_job(session, queue.placement_sync_job(host))
    return frozenset(occupied)


def _occupy(uuid: str, handle: HostHandle) -> Update:
    lower = AttachHandle.generation < handle.generation
    return (
        update(AttachHandle)
        .where(AttachHandle.uuid == uuid, AttachHandle.arq_uuid.is_(None))
        .values(
            clean_state=CleanState.OCCUPIED,
            clean_reason=f'Its host has it prepared for ARQ {handle.arq_uuid} of '
            f'instance {handle.instance_uuid or "unknown"}.',
            generation=case((lower, handle.generation), else_=AttachHandle.generation),
        )
    )


def vacate(session: Session, host: str, uuids: Collection[str]) -> None:
    """Make handles available that are no longer prepared on their host.

    A unit whose driver declares cleaning steps is cleaned first.
    """
    rows = session.execute(
        select(AttachHandle.uuid, AttachHandle.cleaning)
        .where(AttachHandle.uuid.in_(uuids), _OCCUPIED)
        .order_by(AttachHandle.id)
        .with_for_update()
    ).all()
    for uuid, policy in rows:
        state = state_after_use(CleaningPolicy(policy))
        values = {'clean_state': state, 'clean_reason': ''}
        change(
            session,
            update(AttachHandle).where(AttachHandle.uuid == uuid).values(**values),
        )
        if state is CleanState.DIRTY:
            queue.add_job(session, queue.clean_job(uuid, host, CONDUCTOR_ACTOR))
    if rows:
        reports.delete_missing_handles(session, host)
        queue.add_job(session, queue.placement_sync_job(host))


def list_unneeded(session: Session) -> Mapping[str, Collection[str]]:
    """Return occupied handles that no host prepares and nobody needs, by host.

    A recovery holds them while an allocation has no ARQ. The caller has just compared
    the copies of the allocations with Placement.
    """
    needed = select(Allocation.rp_uuid).where(IS_UNOWNED)
    rows = session.execute(
        select(Device.hostname, AttachHandle.uuid)
        .join(Deployable, AttachHandle.deployable_id == Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .where(
            _OCCUPIED,
            AttachHandle.needs_host.is_(False),
            Deployable.rp_uuid.not_in(needed),
        )
        .order_by(AttachHandle.id)
    )
    by_host: defaultdict[str, list[str]] = defaultdict(list)
    for host, uuid in rows:
        by_host[host].append(uuid)
    return by_host


def list_known_users(
    session: Session, rp_uuid: str, instances: Collection[str]
) -> frozenset[str]:
    """Return the instances of the given ones that have an ARQ on a provider."""
    of_provider = Arq.instance_uuid.in_(instances), Arq.device_rp_uuid == rp_uuid
    users: Sequence[str | None] = session.scalars(
        select(Arq.instance_uuid).where(*of_provider)
    ).all()
    return frozenset(uuid for uuid in users if uuid is not None)
