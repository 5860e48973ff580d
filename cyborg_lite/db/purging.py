# SPDX-License-Identifier: Apache-2.0
"""Deletion of rows that would otherwise accumulate for ever.

The audit deletes ARQs, handles and former servers, which need the answer of Nova.
"""

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, delete, exists, or_, select
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.core.change import change
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

MAX_RECORDS: Final = 500  # that one transaction deletes


def delete_old_services(session: Session, before: datetime) -> int:
    """Delete conductors, and agents without devices, without a recent heartbeat.

    :returns: number of deleted rows
    """
    hosts = select(Device.hostname)
    is_superfluous = or_(Service.binary != AGENT, Service.host.not_in(hosts))
    old = delete(Service).where(Service.heartbeat_at < before, is_superfluous)
    return change(session, old)


def delete_old_calls(session: Session, before: datetime) -> int:
    """Delete up to ``MAX_RECORDS`` calls that were received before a time.

    :returns: number of deleted rows
    """
    old = select(ReceivedCall.id).where(ReceivedCall.received_at < before)
    ids = session.scalars(old.limit(MAX_RECORDS)).all()
    is_old = ReceivedCall.id.in_(ids)
    return change(session, delete(ReceivedCall).where(is_old)) if ids else 0


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

    At most ``MAX_RECORDS`` are deleted. The record with the highest id stays, because
    each order for an agent must have a higher number than the orders before it.

    :returns: number of deleted rows
    """
    later = aliased(Cleaning)
    of_unit = (later.device_id == Cleaning.device_id, later.unit == Cleaning.unit)
    has_later = exists().where(*of_unit, later.id > Cleaning.id, _has_ended(later))
    return _delete_records(session, Cleaning, before, has_later)


def delete_old_reconfigurations(session: Session, before: datetime) -> int:
    """Delete changes that ended before a time, except the last one of each device.

    At most ``MAX_RECORDS`` are deleted.

    :returns: number of deleted rows
    """
    later = aliased(Reconfiguration)
    of_device = later.device_id == Reconfiguration.device_id
    has_later = exists().where(
        of_device, later.id > Reconfiguration.id, _has_ended(later)
    )
    return _delete_records(session, Reconfiguration, before, has_later)


def _has_ended(
    record: type[Cleaning] | type[Reconfiguration],
) -> ColumnElement[bool]:
    return record.finished_at.is_not(None)


def _delete_records(
    session: Session,
    table: type[Cleaning] | type[Reconfiguration],
    before: datetime,
    has_later: ColumnElement[bool],
) -> int:
    """Delete the first records that ended before a time and have a later one."""
    old = select(table.id).where(table.finished_at < before, has_later)
    ids = session.scalars(old.order_by(table.id).limit(MAX_RECORDS)).all()
    if not ids:
        return 0
    return change(session, delete(table).where(table.id.in_(ids)))
