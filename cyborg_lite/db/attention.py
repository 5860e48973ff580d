# SPDX-License-Identifier: Apache-2.0
"""Everything that waits for an operator, read from the database."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.orm import Session

from cyborg_lite.db.capacity.provider_capacity import list_provider_capacities
from cyborg_lite.db.core.clock import now_ms, read_time_before
from cyborg_lite.db.core.incarnations import find_quarantine
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import Arq, Device, Job
from cyborg_lite.db.devices.cleanings import list_unclean_units
from cyborg_lite.db.devices.devices import (
    SHOWN_HEALTH,
    SHOWN_HEALTH_REASON,
    list_lost_arqs,
)
from cyborg_lite.db.hosts.services import list_faults, list_services
from cyborg_lite.db.jobs import operations
from cyborg_lite.db.ownership.allocations import list_leaked
from cyborg_lite.db.profiles.profiles import list_profiles
from cyborg_lite.model.attention import (
    DIRTY_SECONDS,
    KINDS,
    LATE_SECONDS,
    MAX_ITEMS,
    AttentionItem,
    AttentionKind,
    Severity,
    check_profiles,
)
from cyborg_lite.model.devices.cleaning import CleanState
from cyborg_lite.model.hosts.services import AGENT, Fault, ServiceState
from cyborg_lite.model.inventory.host_report import NO_PRIVILEGES, Health
from cyborg_lite.model.jobs import JobState
from cyborg_lite.model.operations import OperationKind, SubjectType
from cyborg_lite.model.ownership.allocations import AllocationProblem
from cyborg_lite.model.queries import Query

_OF_PROFILES: Final = (AttentionKind.TYPE_SOLD_OUT, AttentionKind.UNSERVED_PROFILE)
_BINDS: Final = (OperationKind.BIND, OperationKind.NOVA_EVENT)
# A bind is late whether it is due, runs, or waits for its next attempt.
_IS_LATE: Final = and_(
    Job.kind.in_(_BINDS),
    Job.state != JobState.FAILED,
    Job.created_at < now_ms() - 1000 * LATE_SECONDS,
)
_IS_STALE_SYNC: Final = and_(
    Job.kind == OperationKind.RECONCILE,
    Job.state != JobState.FAILED,
    Job.last_error != '',
)


def list_attention(session: Session) -> tuple[AttentionItem, ...]:
    """Return what waits for an operator, at most 1,000 items of a kind.

    It takes at most 15 SELECTs for any number of rows.

    :returns: the most severe kinds first
    """
    faults = list_faults(session, MAX_ITEMS)
    since = {(AttentionKind(fault.kind), fault.name): fault.since for fault in faults}
    sources = (
        _list_quarantine(session),
        _list_jobs(session),
        _list_units(session),
        list_lost_arqs(session),
        _list_devices(session),
        _list_allocations(session),
        _list_services(session),
        _list_faults(faults),
        (
            replace(item, since=since.get((item.kind, item.subject_id)))
            for item in list_profile_faults(session)
        ),
    )
    by_kind: dict[AttentionKind, list[AttentionItem]] = {
        kind: [] for kind in AttentionKind
    }
    for source in sources:
        for item in source:
            if len(by_kind[item.kind]) < MAX_ITEMS:
                by_kind[item.kind].append(item)
    kinds = sorted(by_kind, key=lambda kind: list(Severity).index(KINDS[kind].severity))
    return tuple(item for kind in kinds for item in by_kind[kind])


def _list_quarantine(session: Session) -> Iterator[AttentionItem]:
    quarantine = find_quarantine(session)
    if quarantine is not None:
        yield AttentionItem(
            AttentionKind.QUARANTINE,
            quarantine.since,
            SubjectType.DATABASE,
            str(quarantine.incarnation),
            f'incarnation {quarantine.incarnation}',
            '',
            quarantine.reason,
        )


def _list_jobs(session: Session) -> Iterator[AttentionItem]:
    rows = session.scalars(
        select(Job)
        .where(or_(_IS_LATE, _IS_STALE_SYNC, Job.state == JobState.FAILED))
        .order_by(Job.id)
    ).all()
    instances = [row.payload.get('instance_uuid') for row in rows if row.kind in _BINDS]
    hosts = _find_hosts(session, [uuid for uuid in instances[:MAX_ITEMS] if uuid])
    failed = [row.uuid for row in rows if row.state == JobState.FAILED]
    by_job = operations.list_by_job(session, failed)
    for row in rows:
        instance = row.payload.get('instance_uuid', '')
        hostname = row.host or row.payload.get('hostname') or hosts.get(instance, '')
        name = row.kind
        if row.state == JobState.FAILED:
            kind = AttentionKind.FAILED_JOB
            subject = SubjectType.OPERATION, (*by_job[row.uuid], row.uuid)[0]
        elif row.kind == OperationKind.RECONCILE:
            kind, name = AttentionKind.PLACEMENT_OUTDATED, hostname
            subject = SubjectType.HOST, hostname
        else:
            kind, subject = AttentionKind.LATE_BIND, (SubjectType.INSTANCE, instance)
        since = datetime.fromtimestamp(row.created_at / 1000, UTC)
        reason = row.last_error or f'It has not ended: {row.step or "no step yet"}.'
        yield AttentionItem(kind, since, *subject, name, hostname, reason)


def _find_hosts(session: Session, instances: list[str]) -> dict[str, str]:
    if not instances:
        return {}
    rows = session.execute(
        select(Arq.instance_uuid, func.min(Arq.hostname))
        .where(Arq.instance_uuid.in_(instances), Arq.hostname.is_not(None))
        .group_by(Arq.instance_uuid)
    )
    return {str(row[0]): str(row[1]) for row in rows}


def _list_units(session: Session) -> Iterator[AttentionItem]:
    oldest = read_time_before(session, DIRTY_SECONDS)
    for unit in list_unclean_units(session):
        if unit.state is CleanState.DIRTY and unit.since > oldest:
            continue
        is_held = unit.state is CleanState.OCCUPIED
        yield AttentionItem(
            AttentionKind.HELD_HANDLE if is_held else AttentionKind.UNCLEAN_UNIT,
            unit.since,
            SubjectType.DEVICE,
            unit.device_uuid,
            unit.unit,
            unit.hostname,
            f'{unit.state}: {unit.reason or unit.progress or "it waits."}',
        )


# Kind, the devices that it concerns, and the reason.
_DEVICES: Final = (
    (
        AttentionKind.UNHEALTHY_DEVICE,
        or_(
            Device.health.in_((Health.FAILED, Health.WITHHELD)), Device.quarantine != ''
        ),
        SHOWN_HEALTH + ': ' + SHOWN_HEALTH_REASON,
    ),
    (
        AttentionKind.CONTESTED_DEVICE,
        or_(Device.conflict != '', Device.health == Health.CONFLICT),
        case((Device.conflict != '', Device.conflict), else_=Device.health_reason),
    ),
    (
        AttentionKind.MISSING_PRIVILEGE,
        Device.health_reason.startswith(NO_PRIVILEGES, autoescape=True),
        Device.health_reason,
    ),
)


def _list_devices(session: Session) -> Iterator[AttentionItem]:
    for kind, condition, reason in _DEVICES:
        record = Record(
            AttentionItem,
            Device,
            since=Device.health_since,
            subject_id=Device.uuid,
            subject_name=Device.control_address,
            reason=reason,
        )
        order = Device.hostname, Device.control_address
        statement = record.select().where(condition).order_by(*order)
        for row in session.execute(statement.limit(MAX_ITEMS)):
            yield record.read(row, kind=kind, subject_type=SubjectType.DEVICE)


def _list_allocations(session: Session) -> Iterator[AttentionItem]:
    for item in list_leaked(session):
        is_leak = item.problem is AllocationProblem.LEAKED
        yield AttentionItem(
            AttentionKind.LEAKED_ALLOCATION
            if is_leak
            else AttentionKind.UNOWNED_ALLOCATION,
            item.unowned_since,
            SubjectType.INSTANCE,
            item.consumer_uuid,
            item.provider_name,
            item.hostname,
            item.reason,
        )


def _list_services(session: Session) -> Iterator[AttentionItem]:
    down = Query(filters={'state': (ServiceState.DOWN,)})
    for service in list_services(session, down):
        is_agent = service.binary == AGENT
        yield AttentionItem(
            AttentionKind.HOST_DOWN if is_agent else AttentionKind.CONDUCTOR_DOWN,
            service.heartbeat_at,
            SubjectType.HOST if is_agent else SubjectType.SERVICE,
            service.host if is_agent else service.uuid,
            service.host,
            service.host,
            f'{service.binary} {service.version} sends no heartbeats.',
        )


def list_profile_faults(session: Session) -> tuple[AttentionItem, ...]:
    """Return the device profiles that no device, or no free unit, serves now."""
    profiles = list_profiles(session, Query())
    return check_profiles(profiles, list_provider_capacities(session))


def _list_faults(faults: Sequence[Fault]) -> Iterator[AttentionItem]:
    for fault in faults:
        if fault.kind in _OF_PROFILES:
            continue
        yield AttentionItem(
            AttentionKind(fault.kind),
            fault.since,
            SubjectType.SERVICE,
            _find_subject(fault),
            fault.name,
            fault.host,
            fault.reason,
        )


def _find_subject(fault: Fault) -> str:
    """Return the daemon, or for its outdated key the subcommand that prints the key."""
    if fault.kind != AttentionKind.OUTDATED_KEY:
        return fault.name
    return f'key {fault.host}' if fault.host else 'api-key'
