# SPDX-License-Identifier: Apache-2.0
"""What the providers of all hosts have left, and why some give nothing."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Label, Row, case, func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.handles import FREE
from cyborg_lite.db.providers import UNFIT, taken, unavailable
from cyborg_lite.db.services import AGENT, agent_of
from cyborg_lite.db.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    Service,
)
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.explanations import Supply, Why
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.providers import OWNER, legal_symbol
from cyborg_lite.model.services import ServiceState


def supplies(session: Session) -> tuple[Supply, ...]:
    """One for each deployable that can be scheduled, in one SELECT."""
    counts = _counts().subquery()
    columns = (counts.c.free, counts.c.unavailable, counts.c.taken)
    rows = session.execute(
        select(Deployable, Device, Service.state.label('agent'), LoadedRegion.unusable)
        .add_columns(*(func.coalesce(one, 0).label(one.name) for one in columns))
        .join(Device, Deployable.device_id == Device.id)
        .outerjoin(Service, agent_of(Device.hostname))
        .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
        .outerjoin(counts, counts.c.deployable_id == Deployable.id)
        .where(Deployable.rp_uuid.is_not(None), Deployable.resource_class.is_not(None))
        .order_by(Device.hostname, Deployable.name)
    )
    return tuple(_supply(row) for row in rows)


def hosts(session: Session) -> frozenset[str]:
    """Those that have devices, and those that have an agent and none."""
    devices = select(Device.hostname)
    agents = select(Service.host).where(Service.binary == AGENT)
    return frozenset(session.scalars(devices.union(agents)))


def _counts() -> Any:
    """Handles by deployable; Any: a select whose columns have names only."""
    return (
        select(
            AttachHandle.deployable_id,
            _number(FREE, 'free'),
            _number(unavailable(), 'unavailable'),
            _number(taken(), 'taken'),
        )
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .group_by(AttachHandle.deployable_id)
    )


def _number(which: ColumnElement[bool], name: str) -> Label[int]:
    return func.sum(case((which, 1), else_=0)).label(name)


def _supply(found: Row[*tuple[Any, ...]]) -> Supply:
    # The columns are those of the select above.
    deployable: Deployable = found.Deployable
    total = deployable.num_accelerators
    reserved = min(total, deployable.reserved + int(found.unavailable))
    closed, text = next(_closures(found), (None, ''))
    return Supply(
        rp_uuid=deployable.rp_uuid or '',
        name=deployable.name,
        hostname=found.Device.hostname,
        resource_class=legal_symbol(deployable.resource_class or ''),
        traits=frozenset(map(legal_symbol, deployable.traits)) | {OWNER},
        total=total,
        free=max(0, total - reserved - int(found.taken)),
        free_handles=int(found.free),
        closed=closed,
        closed_text=text,
    )


def _closures(found: Row[*tuple[Any, ...]]) -> Iterator[tuple[Why, str]]:
    """Why a provider gives nothing, the plainest reason first."""
    device: Device = found.Device
    if device.status == DeviceStatus.MAINTAINING:
        yield Why.MAINTENANCE, _with('It is in maintenance', device.status_reason)
    if device.conflict or device.health == Health.CONFLICT:
        reason = device.conflict or device.health_reason
        yield Why.MANAGED_ELSEWHERE, _with('Another service manages it', reason)
    if device.health in UNFIT:
        said = _with(f'Its health is {device.health}', device.health_reason)
        yield Why.UNHEALTHY, said
    if found.unusable:
        yield Why.UNHEALTHY, _with('It is unusable', found.unusable)
    if found.agent == ServiceState.DOWN:
        yield Why.HOST_SILENT, 'The agent of its host is silent.'


def _with(sentence: str, reason: str) -> str:
    return f'{sentence}: {reason.rstrip(".")}.' if reason else f'{sentence}.'
