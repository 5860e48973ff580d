# SPDX-License-Identifier: Apache-2.0
"""Deletion of rows that would otherwise accumulate for ever.

The audit deletes ARQs, handles and former servers, which need the answer of Nova.
"""

from datetime import datetime

from sqlalchemy import delete, exists, or_, select
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.core.change import change, delete_some
from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.tables import (
    Cleaning,
    Deployable,
    Device,
    Job,
    ProviderTraits,
    ReceivedCall,
    Reconfiguration,
    Service,
)
from cyborg_lite.model.hosts.services import AGENT
from cyborg_lite.model.jobs import JobState


def delete_old_services(session: Session, before: datetime) -> int:
    """Delete conductors, and agents without devices, without a recent heartbeat.

    :returns: number of deleted rows
    """
    hosts = select(Device.hostname)
    is_superfluous = or_(Service.binary != AGENT, Service.host.not_in(hosts))
    old = delete(Service).where(Service.heartbeat_at < before, is_superfluous)
    return change(session, old)


def delete_old_calls(session: Session, before: datetime) -> int:
    """Delete calls that were received before a time, as ``delete_some`` does."""
    return delete_some(session, ReceivedCall, ReceivedCall.received_at < before)


def delete_old_failed_jobs(session: Session, seconds: int) -> int:
    """Delete failed jobs that were created over ``seconds`` ago; return their number.

    A retry by an operator makes a failed job a waiting one.
    """
    is_old = Job.created_at < now_ms() - seconds * 1000
    return change(session, delete(Job).where(Job.state == JobState.FAILED, is_old))


def list_unused_provider_traits(
    session: Session, after_id: int, limit: int
) -> tuple[tuple[int, str], ...]:
    """Return id and provider of a page of records that no deployable uses.

    The provider of a removed device may remain in Placement, and needs its record.
    """
    used = select(Deployable.rp_uuid).where(Deployable.rp_uuid.is_not(None))
    unused = (
        select(ProviderTraits.id, ProviderTraits.rp_uuid)
        .where(ProviderTraits.id > after_id, ProviderTraits.rp_uuid.not_in(used))
        .order_by(ProviderTraits.id)
        .limit(limit)
    )
    return tuple((row.id, row.rp_uuid) for row in session.execute(unused))


def delete_old_cleanings(session: Session, before: datetime) -> int:
    """Delete cleaning runs that ended before a time, except the last one of each unit.

    The record with the highest id stays, because each order for an agent must have a
    higher number than the orders before it.
    """
    later = aliased(Cleaning)
    of_unit = later.device_id == Cleaning.device_id, later.unit == Cleaning.unit
    has_later = exists().where(
        *of_unit, later.id > Cleaning.id, later.finished_at.is_not(None)
    )
    return delete_some(session, Cleaning, Cleaning.finished_at < before, has_later)


def delete_old_reconfigurations(session: Session, before: datetime) -> int:
    """Delete changes that ended before a time, except the last one of each device."""
    later, row = aliased(Reconfiguration), Reconfiguration
    has_later = exists().where(
        later.device_id == row.device_id,
        later.id > row.id,
        later.finished_at.is_not(None),
    )
    return delete_some(session, row, row.finished_at < before, has_later)
