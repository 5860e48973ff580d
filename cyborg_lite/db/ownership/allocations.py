# SPDX-License-Identifier: Apache-2.0
"""A copy of the allocations on providers of this service, as the last audit read them.

Placement raises the generation of a provider with each new allocation. It need not do
so when an allocation is deleted. So an unchanged generation means that Placement has
the stored allocations, or fewer of them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import and_, delete, exists, select, tuple_, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_utc, read_time_before
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import (
    Allocation,
    Arq,
    AuditedProvider,
    Deployable,
    Device,
)
from cyborg_lite.model.ownership.allocations import UnownedAllocation

Amounts = Mapping[str, Mapping[str, int]]
"""Allocated amounts by consumer and resource class."""

IS_UNOWNED: Final = ~exists().where(
    Arq.instance_uuid == Allocation.consumer_uuid,
    Arq.device_rp_uuid == Allocation.rp_uuid,
)
"""SQL that is true for an allocation that no ARQ explains."""

_KEY: Final = Allocation.consumer_uuid, Allocation.rp_uuid, Allocation.resource_class
_NAMES: Final = 'consumer_uuid', 'rp_uuid', 'resource_class', 'amount'
_UNOWNED: Final = Record(
    UnownedAllocation,
    Allocation,
    provider_name=Deployable.name,
    hostname=Device.hostname,
)
_UPSERT_ALLOCATION: Final = Upsert(Allocation, _KEY, ['amount'])
_UPSERT_PROVIDER: Final = Upsert(
    AuditedProvider, [AuditedProvider.rp_uuid], ['generation', 'read_at']
)


def list_outdated_providers(
    session: Session, generations: Mapping[str, int], before: datetime
) -> tuple[str, ...]:
    """Return the own providers whose copy may differ from Placement.

    :param generations: provider generations in Placement. A provider that is absent is
        always outdated
    :param before: copies that were read before this time are outdated
    """
    rows = session.execute(
        select(Deployable.rp_uuid, AuditedProvider.generation, AuditedProvider.read_at)
        .outerjoin(AuditedProvider, AuditedProvider.rp_uuid == Deployable.rp_uuid)
        .where(Deployable.rp_uuid.is_not(None))
        .order_by(Deployable.rp_uuid)
    )
    unowned = set(session.scalars(select(Allocation.rp_uuid).where(IS_UNOWNED)))
    return tuple(
        uuid
        for uuid, generation, read_at in rows
        if uuid is not None
        and (
            uuid in unowned
            or generation is None
            or generation != generations.get(uuid)
            or read_at < before
        )
    )


def store_allocations(
    session: Session, generations: Mapping[str, int], allocated: Mapping[str, Amounts]
) -> None:
    """Replace the copies of the allocations of some providers.

    :param generations: of the providers, read before the allocations; -1: unknown, so
        that the copy is outdated
    :param allocated: by provider: the amounts of its consumers
    """
    rows = [
        dict(zip(_NAMES, (consumer, rp_uuid, name, amount), strict=True))
        for rp_uuid, consumers in sorted(allocated.items())
        for consumer, amounts in sorted(consumers.items())
        for name, amount in sorted(amounts.items())
    ]
    keys = [tuple(row.values())[:-1] for row in rows]
    deletion = delete(Allocation).where(Allocation.rp_uuid.in_(allocated))
    change(session, deletion.where(tuple_(*_KEY).not_in(keys)) if keys else deletion)
    if rows:
        _UPSERT_ALLOCATION.run(session, rows)
    read_at = read_time_before(session, 0)
    copies = [
        {'rp_uuid': uuid, 'generation': generations.get(uuid, -1), 'read_at': read_at}
        for uuid in sorted(allocated)
    ]
    _UPSERT_PROVIDER.run(session, copies)


def delete_unused_copies(session: Session) -> None:
    """Delete the copies of providers that no deployable has any more."""
    used = select(Deployable.rp_uuid).where(Deployable.rp_uuid.is_not(None))
    for table in (Allocation, AuditedProvider):
        change(session, delete(table).where(table.rp_uuid.not_in(used)))


def list_amounts(session: Session, providers: Collection[str]) -> Mapping[str, Amounts]:
    """Return the stored amounts, by provider, consumer and resource class."""
    amounts: defaultdict[str, defaultdict[str, dict[str, int]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    of_providers = Allocation.rp_uuid.in_(providers)
    for row in session.scalars(select(Allocation).where(of_providers)):
        amounts[row.rp_uuid][row.consumer_uuid][row.resource_class] = row.amount
    return amounts


def list_unowned(
    session: Session, hostname: str | None = None
) -> tuple[UnownedAllocation, ...]:
    """Return the stored allocations that no ARQ explains, confirmed or not.

    :param hostname: None: of all hosts
    """
    statement = (
        _UNOWNED.select()
        .join(Deployable, Deployable.rp_uuid == Allocation.rp_uuid)
        .join(Device, Device.id == Deployable.device_id)
        .where(IS_UNOWNED)
        .order_by(Device.hostname, Deployable.name, Allocation.consumer_uuid)
    )
    if hostname is not None:
        statement = statement.where(Device.hostname == hostname)
    return _UNOWNED.list(session, statement)


def list_leaked(session: Session) -> tuple[UnownedAllocation, ...]:
    """Return the confirmed allocations without an ARQ that are a problem."""
    return tuple(item for item in list_unowned(session) if item.problem is not None)


def confirm_unowned(session: Session, confirmed: Sequence[UnownedAllocation]) -> None:
    """Store what an audit has confirmed, and end the confirmation of all others."""
    keys = [item.key for item in confirmed]
    reset = update(Allocation).where(Allocation.unowned_since.is_not(None))
    if keys:
        reset = reset.where(tuple_(*_KEY).not_in(keys))
    change(session, reset.values(unowned_since=None, has_server=None))
    for item in confirmed:
        is_same = and_(*(c == value for c, value in zip(_KEY, item.key, strict=True)))
        row = update(Allocation).where(is_same)
        change(session, row.values(has_server=item.has_server))
        unmarked = row.where(Allocation.unowned_since.is_(None))
        change(session, unmarked.values(unowned_since=now_utc()))


def has_arq(session: Session, instance_uuid: str) -> bool:
    """Check whether any ARQ names an instance."""
    of_instance = select(Arq.id).where(Arq.instance_uuid == instance_uuid)
    return session.scalar(of_instance.limit(1)) is not None
