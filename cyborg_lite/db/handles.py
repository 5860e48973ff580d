# SPDX-License-Identifier: Apache-2.0
"""The attach handles that requests hold."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, and_, bindparam, select
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db import loaded_regions
from cyborg_lite.db.services import agent_of
from cyborg_lite.db.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    Service,
)
from cyborg_lite.model.arqs import HAS_DEVICE, State
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory_facts import part_of
from cyborg_lite.model.jobs import Kind, NewJob
from cyborg_lite.model.services import ServiceState

FREE: Final = and_(
    AttachHandle.arq_uuid.is_(None),
    AttachHandle.in_use.is_(False),
    AttachHandle.missing.is_(False),
    # Nobody's, and worked on: an operator has something loaded into the device.
    AttachHandle.preparing.is_(False),
)
"""True of a handle that a request can be given."""

_ROOT: Final = aliased(Deployable)
_HANDLES: Final = (
    select(
        AttachHandle.uuid,
        AttachHandle.arq_uuid,
        AttachHandle.key,
        AttachHandle.type,
        AttachHandle.info,
        AttachHandle.needs_host,
        AttachHandle.preparing,
        AttachHandle.missing,
        AttachHandle.turn,
        Deployable.name,
        Device.hostname,
        Device.driver,
        Device.address,
        Service.state.label('agent'),
        LoadedRegion.loaded,
        LoadedRegion.changed,
        _ROOT.name.label('root_name'),
    )
    .join(Arq, AttachHandle.arq_uuid == Arq.uuid)
    .join(Deployable, AttachHandle.deployable_id == Deployable.id)
    .join(Device, Deployable.device_id == Device.id)
    .outerjoin(Service, agent_of(Device.hostname))
    .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
    .outerjoin(_ROOT, Deployable.root_id == _ROOT.id)
    .order_by(AttachHandle.id)
)
_HELD: Final = _HANDLES.where(AttachHandle.arq_uuid.in_(bindparam('uuids')))


def release_job(handle: HeldHandle, request_id: str | None) -> NewJob:
    """For a handle whose host must clean it; one at a time for each handle."""
    # Of the handle alone: who holds it may change while the job waits to run again.
    payload = {'handle': handle.uuid}
    return NewJob(Kind.RELEASE, payload, key=handle.uuid, request_id=request_id)


def unclean() -> ColumnElement[bool]:
    """True of a handle whose request has no use for it any more: its host cleans it.

    For a select that joins the requests to the handles.
    """
    return and_(
        AttachHandle.needs_host.is_(True),
        AttachHandle.preparing.is_(False),
        Arq.state.not_in(HAS_DEVICE),
    )


def to_clean(session: Session, uuid: str) -> HeldHandle | None:
    """The handle, if its host has to clean it; None: there is nothing to do."""
    wanted = _HANDLES.where(AttachHandle.uuid == uuid, unclean())
    row = session.execute(wanted).one_or_none()
    return None if row is None else _handle(row)


def held(session: Session, uuids: Sequence[str]) -> tuple[HeldHandle, ...]:
    """The handles that these requests hold, with what their host must know."""
    return tuple(map(_handle, session.execute(_HELD, {'uuids': uuids})))


def being_rebuilt(session: Session, hostname: str) -> tuple[HeldHandle, ...]:
    """What a host has to make again after a boot, for requests that still want it."""
    waiting = Arq.state == State.PROVISIONING
    wanted = _HANDLES.where(Device.hostname == hostname, waiting)
    return tuple(map(_handle, session.execute(wanted)))


# Any: the columns are those of the select above.
def _handle(row: Row[*tuple[Any, ...]]) -> HeldHandle:
    part = part_of(row.name, row.root_name or row.name)
    loaded = None if row.loaded is None else loaded_regions.read(row.loaded)
    return HeldHandle(
        uuid=row.uuid,
        arq_uuid=row.arq_uuid or '',
        hostname=row.hostname,
        deployable_name=row.name,
        driver=row.driver,
        address=row.address,
        key=row.key,
        type=row.type,
        info=row.info,
        needs_host=row.needs_host,
        preparing=row.preparing,
        missing=row.missing,
        turn=row.turn,
        host_silent=row.agent == ServiceState.DOWN,
        load=None if loaded is None else LoadOrder(row.address, part, loaded),
        changed=bool(row.changed),
    )
