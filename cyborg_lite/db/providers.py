# SPDX-License-Identifier: Apache-2.0
"""What Placement should show of a host."""

from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Label,
    Row,
    ScalarSelect,
    and_,
    func,
    not_,
    or_,
    select,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.handles import unclean
from cyborg_lite.db.services import agent_of
from cyborg_lite.db.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    ProviderTraits,
    Service,
)
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.jobs import Kind, NewJob
from cyborg_lite.model.providers import ProviderRow
from cyborg_lite.model.services import ServiceState

UNFIT: Final = (Health.FAILED, Health.GONE)
"""Of such a device nothing is given any more."""


def providers_of_host(session: Session, hostname: str) -> tuple[ProviderRow, ...]:
    """One for each deployable that can be scheduled.

    Reserved is what its driver says, with the handles that nobody can be given; of a
    device in maintenance, or that failed or vanished, and of a region that a load has
    left unusable it is everything. Of a host whose agent is silent it is all that
    nobody has: what is allocated stays within the total, or Placement would refuse to
    write the same allocation once more.
    """
    rows = session.execute(
        select(
            Deployable,
            Device.uuid.label('device_uuid'),
            Device.driver,
            Device.status,
            Device.health,
            Device.health_reason,
            Device.conflict,
            ProviderTraits.traits.label('told'),
            Service.state.label('agent'),
            LoadedRegion.unusable,
            *_handle_counts(),
        )
        .join(Device, Deployable.device_id == Device.id)
        .outerjoin(Service, agent_of(Device.hostname))
        .outerjoin(ProviderTraits, ProviderTraits.rp_uuid == Deployable.rp_uuid)
        .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
        .where(
            Device.hostname == hostname,
            Deployable.rp_uuid.is_not(None),
            Deployable.resource_class.is_not(None),
        )
        .order_by(Deployable.name)
    )
    return tuple(_row(row) for row in rows)


def unavailable() -> ColumnElement[bool]:
    """True of a handle that cannot be given to anybody.

    For a select that joins the requests to the handles, as is ``taken``.
    """
    held_by_strangers = and_(
        AttachHandle.in_use.is_(True), AttachHandle.arq_uuid.is_(None)
    )
    # The server of an unclean one has left, and Placement has its allocation back.
    return or_(AttachHandle.missing.is_(True), held_by_strangers, unclean())


def taken() -> ColumnElement[bool]:
    """True of a handle that somebody was given and still has."""
    return and_(AttachHandle.arq_uuid.is_not(None), not_(unclean()))


def _handle_counts() -> tuple[Label[int], Label[int]]:
    """Handles that cannot be given to anybody, and those that somebody was given."""
    return _handles(unavailable()).label('unavailable'), _handles(taken()).label('held')


def _handles(which: ColumnElement[bool]) -> ScalarSelect[int]:
    return (
        select(func.count())
        .select_from(AttachHandle)
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .where(AttachHandle.deployable_id == Deployable.id, which)
        .correlate(Deployable)
        .scalar_subquery()
    )


def _row(found: Row[*tuple[Any, ...]]) -> ProviderRow:
    # The columns are those of the select above.
    deployable: Deployable = found.Deployable
    total = deployable.num_accelerators
    reserved = min(total, deployable.reserved + found.unavailable)
    if found.agent == ServiceState.DOWN:
        reserved = max(reserved, total - found.held)
    unfit = found.health in UNFIT or found.unusable
    if found.status == DeviceStatus.MAINTAINING or unfit:
        reserved = total
    return ProviderRow(
        rp_uuid=deployable.rp_uuid or '',
        name=deployable.name,
        resource_class=deployable.resource_class or '',
        traits=tuple(deployable.traits),
        total=total,
        reserved=reserved,
        told=None if found.told is None else tuple(found.told),
        device_uuid=found.device_uuid,
        driver=found.driver,
        conflict=found.conflict,
        contested=found.health_reason if found.health == Health.CONFLICT else '',
    )


def sync_job(
    hostname: str, request_id: str | None = None, *, deep: bool = False
) -> NewJob:
    """To be written with any change of what ``providers_of_host`` returns.

    ``deep``: all that Placement has of the host is read again.
    """
    payload: dict[str, Any] = {'host': hostname}  # JSON
    if deep:
        payload['deep'] = True
    return NewJob(
        Kind.PLACEMENT_SYNC,
        payload,
        key=hostname,
        request_id=request_id,
        widens=deep,
    )
