# SPDX-License-Identifier: Apache-2.0
"""Providers with their free capacity, and with the instances whose ARQs name them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import ColumnElement, Label, Row, case, func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.tables import (
    Allocation,
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    Service,
)
from cyborg_lite.db.devices import cleanings, elastic_cards
from cyborg_lite.db.ownership.allocations import IS_UNOWNED
from cyborg_lite.db.profiles import selectors
from cyborg_lite.db.providers.providers import (
    UNIT_STATE,
    is_allocated,
    is_unavailable,
    read_size,
)
from cyborg_lite.model.capacity.availability import Withholding, settle
from cyborg_lite.model.capacity.device_types import DeviceType
from cyborg_lite.model.capacity.explanations import ProviderCapacity, ReasonCode
from cyborg_lite.model.devices.cleaning import FREE_STATES
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.hosts.topology import Availability
from cyborg_lite.model.inventory.host_report import UNUSABLE_HEALTH, HandleType, Health
from cyborg_lite.model.inventory.typed_attributes import (
    MEMORY,
    MIG_PROFILE,
    VGPU_TYPE,
)
from cyborg_lite.model.profiles.selectors import Selector, select_traits
from cyborg_lite.model.providers.providers import valid_symbol
from cyborg_lite.model.traits import OWNER_CYBORG

_DEPLOYABLE_COLUMNS: Final = (
    'rp_uuid',
    'name',
    'resource_class',
    'traits',
    'num_accelerators',
)
CLOSURE_COLUMNS: Final = (
    Device.status,
    Device.status_reason,
    Device.health,
    Device.health_reason,
    Device.conflict,
    Device.quarantine,
    Service.state.label('agent'),
    LoadedRegion.unusable_reason,
    Deployable.reserved,
)
"""Columns that decide which units of a deployable can be used at all."""

_UNOWNED: Final = (
    select(Allocation.rp_uuid, func.sum(Allocation.amount).label('unowned'))
    .where(IS_UNOWNED, Allocation.unowned_since.is_not(None))
    .group_by(Allocation.rp_uuid)
    .subquery()
)


def list_provider_capacities(
    session: Session,
    active: Sequence[Selector] = (),
    loadable: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> tuple[ProviderCapacity, ...]:
    """Return one capacity for each deployable that can be scheduled, in one SELECT.

    A second SELECT reads the units that are not clean, and a third one those of
    elastic cards, if there are any.

    :param active: selectors whose traits the capacities have where they match
    :param loadable: attributes of the bitstreams that fit, by uuid of the provider
    """
    counts = _handle_counts().subquery()
    numbers = [column for column in counts.c if column.name != 'deployable_id']
    rows = session.execute(
        select(
            *(getattr(Deployable, name) for name in _DEPLOYABLE_COLUMNS),
            *CLOSURE_COLUMNS,
            Device.hostname,
            Deployable.device_id,
            elastic_cards.PLACES,
            *selectors.ATTRIBUTES,
            func.coalesce(_UNOWNED.c.unowned, 0).label('unowned'),
        )
        .add_columns(*(func.coalesce(count, 0).label(count.name) for count in numbers))
        .join(Device, Deployable.device_id == Device.id)
        .outerjoin(Service, Service.is_agent_of(Device.hostname))
        .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
        .outerjoin(counts, counts.c.deployable_id == Deployable.id)
        .outerjoin(_UNOWNED, _UNOWNED.c.rp_uuid == Deployable.rp_uuid)
        .where(Deployable.rp_uuid.is_not(None), Deployable.resource_class.is_not(None))
        .order_by(Device.hostname, Deployable.name)
    ).all()
    fitting = elastic_cards.count_fitting(session, rows)
    capacities = tuple(
        replace(
            _capacity(row, fitting.get(row.rp_uuid)),
            traits=_list_traits(row, active, loadable),
        )
        for row in rows
    )
    if not any(row.count_unclean for row in rows):
        return capacities
    units = cleanings.list_unclean_by_provider(session)
    return tuple(
        replace(capacity, unclean=tuple(units.get(capacity.rp_uuid, ())))
        for capacity in capacities
    )


def list_device_types(session: Session) -> dict[str, DeviceType]:
    """Return the type of the units of each provider by its uuid, in one SELECT."""
    rows = session.execute(
        select(Deployable.rp_uuid, Deployable.resource_class, *selectors.ATTRIBUTES)
        .join(Device, Deployable.device_id == Device.id)
        .where(Deployable.rp_uuid.is_not(None), Deployable.resource_class.is_not(None))
    )
    return {str(row.rp_uuid): _read_device_type(row) for row in rows}


# Any: the columns of list_device_types.
def _read_device_type(row: Row[*tuple[Any, ...]]) -> DeviceType:
    attributes = selectors.list_attributes(row, None)
    values = {item.name: item.value for item in attributes}
    memory = values.get(MEMORY.name, '')
    return DeviceType(
        row.type or '',
        row.vendor or '',
        row.model or '',
        valid_symbol(row.resource_class),
        values.get(MIG_PROFILE.name) or values.get(VGPU_TYPE.name, ''),
        int(memory) if memory.isdecimal() else None,
    )


def _handle_counts() -> Any:
    """Return a SELECT of handle counts by deployable; Any: its columns are untyped."""
    return (
        select(
            AttachHandle.deployable_id,
            *(
                _count(UNIT_STATE.element == state.value, state)
                for state in Availability
            ),
            _count(is_unavailable(), 'unavailable'),
            # Not the units in state USED: an instance may use a missing handle.
            _count(is_allocated(), 'owned'),
            _count(AttachHandle.type == HandleType.MDEV, 'mdevs'),
            _count(AttachHandle.managed.is_(False), 'unmanaged'),
            _count(AttachHandle.clean_state.not_in(FREE_STATES), 'unclean'),
        )
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .group_by(AttachHandle.deployable_id)
    )


def _count(condition: ColumnElement[bool], name: str) -> Label[int]:
    return func.sum(case((condition, 1), else_=0)).label(f'count_{name}')


# Any: the columns of list_provider_capacities.
def _capacity(row: Row[*tuple[Any, ...]], fitting: int | None) -> ProviderCapacity:
    """Return a capacity without its traits.

    :param fitting: further units that fit on the card; None: the card is not elastic
    """
    total, unowned = row.num_accelerators, int(row.unowned)
    reserved = min(total, row.reserved + int(row.count_unavailable))
    withholding = replace(
        find_withholding(row),
        consumers=('',) * unowned,
        fitting=fitting,
    )
    own = {state: int(getattr(row, f'count_{state}')) for state in Availability}
    free = max(0, total - reserved - int(row.count_owned) - unowned)
    room = withholding.limit(free)
    return ProviderCapacity(
        rp_uuid=row.rp_uuid,
        name=row.name,
        hostname=row.hostname,
        resource_class=valid_symbol(row.resource_class),
        traits=frozenset(),
        total=total,
        free=room,
        free_handles=own[Availability.FREE] - (free - room),
        closed=withholding.closed,
        closed_text=withholding.closed_text,
        has_mdev=row.count_mdevs > 0,
        has_unmanaged=row.count_unmanaged > 0,
        unowned=unowned,
        unfitting=free - room,
        states=settle(own, withholding),
    )


# Any: the columns of list_provider_capacities.
def _list_traits(
    row: Row[*tuple[Any, ...]],
    active: Sequence[Selector],
    loadable: Mapping[str, Sequence[str]],
) -> frozenset[str]:
    reported = row.traits if isinstance(row.traits, list) else ()
    traits = frozenset(valid_symbol(str(trait)) for trait in reported) | {OWNER_CYBORG}
    traits |= selectors.list_taints(row.health)
    if not active:
        return traits
    attributes = selectors.list_attributes(row, loadable.get(row.rp_uuid))
    return traits | select_traits(active, attributes)


# Any: a SELECT with CLOSURE_COLUMNS and GROUP_SIZE.
def find_withholding(row: Row[*tuple[Any, ...]]) -> Withholding:
    """Return what a deployable withholds, and the first reason of a closed one."""
    code, text = next(_list_closures(row), (None, ''))
    size = max(1, read_size(row.group_size))
    return Withholding(code, text, reserved=row.reserved, group_size=size)


# Any: a SELECT with CLOSURE_COLUMNS.
def _list_closures(row: Row[*tuple[Any, ...]]) -> Iterator[tuple[ReasonCode, str]]:
    """Yield the reasons why nothing can be allocated, the worst one first."""
    if row.health in UNUSABLE_HEALTH:
        health = f'The health of the device is {row.health}'
        yield ReasonCode.UNHEALTHY, _sentence(health, row.health_reason)
    if row.unusable_reason:
        yield (
            ReasonCode.UNHEALTHY,
            _sentence('The region is unusable', row.unusable_reason),
        )
    if row.quarantine:
        text = _sentence('The device is quarantined', row.quarantine)
        yield ReasonCode.WITHHELD, text
    if row.health == Health.WITHHELD:
        text = _sentence('A health rule withholds the device', row.health_reason)
        yield ReasonCode.WITHHELD, text
    if row.status == DeviceStatus.MAINTAINING:
        text = _sentence('The device is in maintenance', row.status_reason)
        yield ReasonCode.MAINTENANCE, text
    if row.conflict or row.health == Health.CONFLICT:
        reason = row.conflict or row.health_reason
        text = _sentence('Another service manages the device', reason)
        yield ReasonCode.MANAGED_ELSEWHERE, text
    if row.agent == ServiceState.DOWN:
        yield ReasonCode.HOST_SILENT, 'The agent of the host is down.'


def _sentence(statement: str, reason: str) -> str:
    return f'{statement}: {reason.rstrip(".")}.' if reason else f'{statement}.'


# --- providers of one host ---


def list_own_classes(session: Session, hostname: str) -> Mapping[str, str]:
    """Return the resource classes of the providers of a host, by uuid."""
    deployables = (
        select(Deployable.rp_uuid, Deployable.resource_class)
        .join(Device, Device.id == Deployable.device_id)
        .where(Device.hostname == hostname, Deployable.rp_uuid.is_not(None))
    )
    return {
        uuid or '': valid_symbol(name or '')
        for uuid, name in session.execute(deployables)
    }


# --- numbers in the whole cloud ---


def count_arqs(session: Session) -> Mapping[str, int]:
    """Return the number of ARQs by state."""
    rows = session.execute(select(Arq.state, func.count()).group_by(Arq.state))
    return {row.state: int(row[1]) for row in rows}


def count_services(session: Session) -> Mapping[tuple[str, str], int]:
    """Return the number of daemons by binary and state."""
    keys = Service.binary, Service.state
    rows = session.execute(select(*keys, func.count()).group_by(*keys))
    return {(binary, state): number for binary, state, number in rows}
