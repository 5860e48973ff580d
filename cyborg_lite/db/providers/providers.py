# SPDX-License-Identifier: Apache-2.0
"""Resource providers: what Placement must contain, and when to compare it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    ScalarSelect,
    and_,
    bindparam,
    case,
    delete,
    func,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_utc, read_time_before
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    ProviderTraits,
    Service,
)
from cyborg_lite.db.devices import elastic_cards
from cyborg_lite.db.inventory.handles import needs_cleaning
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.profiles import selectors
from cyborg_lite.db.profiles.formats import list_former_traits, uses_former_traits
from cyborg_lite.model.devices.cleaning import FREE_STATES
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.services import AGENT, ServiceState
from cyborg_lite.model.hosts.topology import Availability
from cyborg_lite.model.inventory.host_report import CLOSED_HEALTH, Health
from cyborg_lite.model.profiles.renames import rename_trait
from cyborg_lite.model.profiles.selectors import Selector, select_traits
from cyborg_lite.model.providers.providers import ProviderRow, valid_symbol

_MAX_DIGITS: Final = 10
_MAX_HOSTS: Final = 1000  # audits that one transaction schedules
_UPSERT_TRAITS: Final = Upsert(ProviderTraits, [ProviderTraits.rp_uuid], ['traits'])


def list_providers_of_host(session: Session, hostname: str) -> tuple[ProviderRow, ...]:
    """Return one provider for each deployable that can be scheduled.

    The reserved amount is that of the driver plus the handles that no ARQ can claim. It
    is the total if the device is in maintenance, failed or gone, or if a load has left
    the region unusable. If the agent is down, everything that is not allocated is
    reserved: Placement rejects writing an allocation again if the allocated and the
    reserved amounts exceed the total. Of a size of an elastic card, all units are
    reserved that neither are allocated nor fit beside the units in use.
    """
    rows = session.execute(_OF_HOST, {'hostname': hostname}).all()
    fitting = elastic_cards.count_fitting(session, rows)
    providers = tuple(_provider(row, fitting.get(row.rp_uuid)) for row in rows)
    if any(row.has_selectors for row in rows):
        active = selectors.list_selectors(session)
        providers = tuple(
            _add_selector_traits(provider, row, active)
            for provider, row in zip(providers, rows, strict=True)
        )
    if not any(row.uses_former_traits for row in rows):
        return providers
    former = list_former_traits(session, hostname)
    return tuple(_add_former_traits(provider, former) for provider in providers)


# Any: the columns of list_providers_of_host.
def _add_selector_traits(
    provider: ProviderRow, row: Row[*tuple[Any, ...]], active: Sequence[Selector]
) -> ProviderRow:
    """Return the provider with the traits of the selectors that it matches.

    It has none of them while its attributes may be outdated.
    """
    if not selectors.is_reliable(row.agent, row.health):
        return provider
    attributes = selectors.list_attributes(row, row.loadable)
    names = select_traits(active, attributes)
    return replace(provider, traits=(*provider.traits, *sorted(names)))


def _add_former_traits(provider: ProviderRow, former: frozenset[str]) -> ProviderRow:
    """Return the provider with the former names of its traits that are in use."""
    names = {name for name in former if rename_trait(name) in provider.traits}
    return replace(provider, traits=(*provider.traits, *sorted(names)))


def is_allocated() -> ColumnElement[bool]:
    """Return SQL that is true for a handle that an ARQ uses.

    For a SELECT that joins ``arqs`` to the handles.
    """
    return and_(AttachHandle.arq_uuid.is_not(None), not_(needs_cleaning()))


UNIT_STATE: Final = case(
    (AttachHandle.missing.is_(True), Availability.BROKEN.value),
    (is_allocated(), Availability.USED.value),
    # The instance of a handle to be cleaned has released its allocation in Placement.
    (
        or_(needs_cleaning(), AttachHandle.clean_state.not_in(FREE_STATES)),
        Availability.DIRTY.value,
    ),
    (AttachHandle.in_use.is_(True), Availability.RESERVED.value),
    # Also during a load: a bind waits for its end.
    else_=Availability.FREE.value,
).label('state')
"""SQL for the Availability that a unit has of its own, whatever its deployable says.

For a SELECT that joins ``arqs`` to the handles.
"""


def is_unavailable() -> ColumnElement[bool]:
    """Return SQL that is true for a handle that is reserved in Placement.

    Of a missing handle that an ARQ uses, Placement has the allocation instead.
    """
    return and_(UNIT_STATE.element != Availability.FREE.value, not_(is_allocated()))


def _count_handles(condition: ColumnElement[bool]) -> ScalarSelect[int]:
    return (
        select(func.count())
        .select_from(AttachHandle)
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .where(AttachHandle.deployable_id == Deployable.id, condition)
        .correlate(Deployable)
        .scalar_subquery()
    )


# Built once: building it takes three times the CPU time of running it.
_OF_HOST: Final = (
    select(
        Deployable.rp_uuid,
        Deployable.device_id,
        Deployable.name,
        Deployable.resource_class,
        Deployable.traits,
        Deployable.num_accelerators.label('total'),
        elastic_cards.PLACES,
        Deployable.reserved,
        *selectors.ATTRIBUTES,
        Deployable.loadable,
        Device.uuid.label('device_uuid'),
        Device.driver,
        Device.status,
        Device.health,
        Device.health_reason,
        Device.conflict,
        Device.quarantine,
        ProviderTraits.traits.label('published_traits'),
        Service.state.label('agent'),
        LoadedRegion.unusable_reason,
        uses_former_traits(bindparam('hostname')).label('uses_former_traits'),
        selectors.has_selectors().label('has_selectors'),
        _count_handles(is_unavailable()).label('unavailable'),
        _count_handles(is_allocated()).label('allocated'),
    )
    .join(Device, Deployable.device_id == Device.id)
    .outerjoin(Service, Service.is_agent_of(Device.hostname))
    .outerjoin(ProviderTraits, ProviderTraits.rp_uuid == Deployable.rp_uuid)
    .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
    .where(
        Device.hostname == bindparam('hostname'),
        Deployable.rp_uuid.is_not(None),
        Deployable.resource_class.is_not(None),
    )
    .order_by(Deployable.name)
)


# Any: the columns of list_providers_of_host.
def _provider(row: Row[*tuple[Any, ...]], fitting: int | None) -> ProviderRow:
    """Return a provider.

    :param fitting: further units that fit on the card; None: the card is not elastic
    """
    total = row.total
    reserved = min(total, row.reserved + row.unavailable)
    if fitting is not None:
        reserved = max(reserved, total - row.allocated - fitting)
    if row.agent == ServiceState.DOWN:
        reserved = max(reserved, total - row.allocated)
    unusable = row.health in CLOSED_HEALTH or row.unusable_reason
    if row.status == DeviceStatus.MAINTAINING or unusable or row.quarantine:
        reserved = total
    published = row.published_traits
    return ProviderRow(
        rp_uuid=row.rp_uuid or '',
        name=row.name,
        resource_class=row.resource_class or '',
        traits=(*row.traits, *selectors.list_taints(row.health)),
        total=total,
        reserved=reserved,
        published_traits=None if published is None else tuple(published),
        device_uuid=row.device_uuid,
        driver=row.driver,
        conflict=row.conflict,
        contested=row.health_reason if row.health == Health.CONFLICT else '',
        group_size=read_size(row.group_size),
    )


def read_size(text: str | None) -> int:
    """Return the size of a group; 1 if the driver states none or no number."""
    return int(text) if text and text.isdecimal() and len(text) < _MAX_DIGITS else 1


# --- traits that Cyborg has set ---


def list_published_traits(
    session: Session, rp_uuids: Collection[str] | None = None
) -> frozenset[str]:
    """Return the traits that Cyborg may have set on the providers.

    :param rp_uuids: None: all providers
    """
    records = select(ProviderTraits.traits)
    if rp_uuids is not None:
        records = records.where(ProviderTraits.rp_uuid.in_(rp_uuids))
    return frozenset(trait for traits in session.scalars(records) for trait in traits)


def list_desired_names(session: Session) -> frozenset[str]:
    """Return traits and resource classes of all deployables that can be scheduled."""
    columns = select(Deployable.resource_class, Deployable.traits).where(
        Deployable.rp_uuid.is_not(None)
    )
    return frozenset(
        valid_symbol(name)
        for row in session.execute(columns)
        for name in (row.resource_class or '', *row.traits)
    )


def record_provider_traits(
    session: Session, traits_by_provider: Mapping[str, Collection[str]]
) -> None:
    """Store all traits that Cyborg may have set on providers, in one statement.

    Call it before writing the traits to Placement. A conductor that crashes in between
    leaves a superfluous record, but never a trait that Cyborg does not know as its own.
    """
    # A fixed order prevents deadlocks between two transactions.
    rows = [
        {'rp_uuid': uuid, 'traits': sorted(traits)}
        for uuid, traits in sorted(traits_by_provider.items())
    ]
    if rows:
        _UPSERT_TRAITS.run(session, rows)


def delete_provider_traits(session: Session, rp_uuids: Collection[str]) -> None:
    """Delete the records of providers that were deleted in Placement."""
    if rp_uuids:
        deleted = ProviderTraits.rp_uuid.in_(rp_uuids)
        change(session, delete(ProviderTraits).where(deleted))


def delete_unused_traits(session: Session, rp_uuids: Collection[str]) -> None:
    """Do as ``delete_provider_traits`` for the providers without a deployable.

    A host that has returned meanwhile may publish a provider again.
    """
    if rp_uuids:
        used = select(Deployable.rp_uuid).where(Deployable.rp_uuid.in_(rp_uuids))
        unused = (
            ProviderTraits.rp_uuid.in_(rp_uuids),
            ProviderTraits.rp_uuid.not_in(used),
        )
        change(session, delete(ProviderTraits).where(*unused))


# --- audits of Placement ---


def schedule_placement_audits(session: Session, interval: float, pause: float) -> int:
    """Write jobs that compare due hosts with Placement; return the number of hosts.

    Each call takes such a share of all hosts that each host is compared once per
    ``interval`` if the function is called every ``pause`` seconds. Concurrent
    conductors do not schedule a host twice.

    :param interval: seconds between two audits of a host
    :param pause: seconds between two calls
    """
    hosts = session.scalar(
        select(func.count()).select_from(Service).where(Service.binary == AGENT)
    )
    share = min(_MAX_HOSTS, math.ceil((hosts or 0) * pause / interval))
    is_due = Service.audited_at < read_time_before(session, interval)
    due = session.execute(
        select(Service.id, Service.host)
        .where(Service.binary == AGENT, is_due)
        .order_by(Service.audited_at, Service.id)
        .limit(share)
    ).all()
    if not due:
        return 0
    audited = update(Service).where(Service.id.in_([row.id for row in due]), is_due)
    if change(session, audited.values(audited_at=now_utc())) != len(due):
        # Another conductor has scheduled some of these hosts.
        return 0
    for row in due:
        queue.add_job(session, queue.placement_sync_job(row.host))
    return len(due)


def schedule_conflict_checks(session: Session) -> int:
    """Write sync jobs for hosts whose devices another service manages as well.

    Nothing notifies Cyborg when such a conflict ends.

    :returns: the number of hosts
    """
    hosts = session.scalars(
        select(Device.hostname).where(Device.conflict != '').distinct()
    ).all()
    queue.sync_hosts(session, hosts)
    return len(hosts)
