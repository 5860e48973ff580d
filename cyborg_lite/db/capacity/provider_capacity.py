# SPDX-License-Identifier: Apache-2.0
"""Providers with their free capacity, and with the instances whose ARQs name them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Label, Row, case, func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    Service,
)
from cyborg_lite.db.devices import cleanings
from cyborg_lite.db.inventory.handles import FREE
from cyborg_lite.db.profiles import selectors
from cyborg_lite.db.providers.providers import is_allocated, is_unavailable
from cyborg_lite.model.capacity.explanations import ProviderCapacity, ReasonCode
from cyborg_lite.model.devices.cleaning import CleanState
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.inventory.host_report import UNUSABLE_HEALTH, HandleType, Health
from cyborg_lite.model.ownership.sharing import OwnProvider
from cyborg_lite.model.profiles.selectors import Selector, select_traits
from cyborg_lite.model.providers.providers import valid_symbol
from cyborg_lite.model.traits import OWNER_CYBORG


def list_provider_capacities(
    session: Session,
    active: Sequence[Selector] = (),
    loadable: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> tuple[ProviderCapacity, ...]:
    """Return one capacity for each deployable that can be scheduled, in one SELECT.

    A second SELECT reads the units that are not clean, if there are any.

    :param active: selectors whose traits the capacities have where they match
    :param loadable: attributes of the bitstreams that fit, by uuid of the provider
    """
    counts = _handle_counts().subquery()
    columns = (
        counts.c.free,
        counts.c.unavailable,
        counts.c.allocated,
        counts.c.mdevs,
        counts.c.unmanaged,
        counts.c.unclean,
    )
    rows = session.execute(
        select(
            Deployable,
            Device,
            Service.state.label('agent'),
            LoadedRegion.unusable_reason,
            *selectors.ATTRIBUTES,
        )
        .add_columns(*(func.coalesce(count, 0).label(count.name) for count in columns))
        .join(Device, Deployable.device_id == Device.id)
        .outerjoin(Service, Service.is_agent_of(Device.hostname))
        .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
        .outerjoin(counts, counts.c.deployable_id == Deployable.id)
        .where(Deployable.rp_uuid.is_not(None), Deployable.resource_class.is_not(None))
        .order_by(Device.hostname, Deployable.name)
    ).all()
    capacities = tuple(_capacity(row, active, loadable) for row in rows)
    if not any(row.unclean for row in rows):
        return capacities
    units = cleanings.list_unclean_by_provider(session)
    return tuple(
        replace(capacity, unclean=tuple(units.get(capacity.rp_uuid, ())))
        for capacity in capacities
    )


def _handle_counts() -> Any:
    """Return a SELECT of handle counts by deployable; Any: its columns are untyped."""
    return (
        select(
            AttachHandle.deployable_id,
            _count(FREE, 'free'),
            _count(is_unavailable(), 'unavailable'),
            _count(is_allocated(), 'allocated'),
            _count(AttachHandle.type == HandleType.MDEV, 'mdevs'),
            _count(AttachHandle.managed.is_(False), 'unmanaged'),
            _count(AttachHandle.clean_state != CleanState.CLEAN, 'unclean'),
        )
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .group_by(AttachHandle.deployable_id)
    )


def _count(condition: ColumnElement[bool], name: str) -> Label[int]:
    return func.sum(case((condition, 1), else_=0)).label(name)


# Any: the columns of list_provider_capacities.
def _capacity(
    row: Row[*tuple[Any, ...]],
    active: Sequence[Selector],
    loadable: Mapping[str, Sequence[str]],
) -> ProviderCapacity:
    deployable: Deployable = row.Deployable
    total = deployable.num_accelerators
    reserved = min(total, deployable.reserved + int(row.unavailable))
    closed, text = next(_list_closures(row), (None, ''))
    attributes = selectors.list_attributes(row, loadable.get(deployable.rp_uuid or ''))
    return ProviderCapacity(
        rp_uuid=deployable.rp_uuid or '',
        name=deployable.name,
        hostname=row.Device.hostname,
        resource_class=valid_symbol(deployable.resource_class or ''),
        traits=frozenset(map(valid_symbol, deployable.traits))
        | select_traits(active, attributes)
        | {OWNER_CYBORG},
        total=total,
        free=max(0, total - reserved - int(row.allocated)),
        free_handles=int(row.free),
        closed=closed,
        closed_text=text,
        has_mdev=row.mdevs > 0,
        has_unmanaged=row.unmanaged > 0,
    )


# Any: the columns of a SELECT.
def _list_closures(row: Row[*tuple[Any, ...]]) -> Iterator[tuple[ReasonCode, str]]:
    """Yield the reasons why nothing can be allocated, the most direct one first.

    :param row: with the columns ``Device``, ``unusable_reason`` and ``agent``
    """
    device: Device = row.Device
    if device.status == DeviceStatus.MAINTAINING:
        text = _sentence('The device is in maintenance', device.status_reason)
        yield ReasonCode.MAINTENANCE, text
    if device.conflict or device.health == Health.CONFLICT:
        reason = device.conflict or device.health_reason
        text = _sentence('Another service manages the device', reason)
        yield ReasonCode.MANAGED_ELSEWHERE, text
    if device.health in UNUSABLE_HEALTH:
        health = f'The health of the device is {device.health}'
        yield ReasonCode.UNHEALTHY, _sentence(health, device.health_reason)
    if row.unusable_reason:
        yield (
            ReasonCode.UNHEALTHY,
            _sentence('The region is unusable', row.unusable_reason),
        )
    if row.agent == ServiceState.DOWN:
        yield ReasonCode.HOST_SILENT, 'The agent of the host is down.'


def _sentence(statement: str, reason: str) -> str:
    return f'{statement}: {reason.rstrip(".")}.' if reason else f'{statement}.'


# --- providers of one host ---


def list_own_providers(session: Session, hostname: str) -> tuple[OwnProvider, ...]:
    """Return the providers of the devices of a host."""
    deployables = (
        select(Deployable.rp_uuid, Deployable.resource_class)
        .join(Device, Device.id == Deployable.device_id)
        .where(Device.hostname == hostname, Deployable.rp_uuid.is_not(None))
        .order_by(Deployable.name)
    )
    return tuple(
        OwnProvider(uuid or '', valid_symbol(name or ''))
        for uuid, name in session.execute(deployables)
    )
