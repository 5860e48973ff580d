# SPDX-License-Identifier: Apache-2.0
"""Recovery of ARQs after a host reboot.

Moves ARQs to Provisioning after a reboot, then to Bound or BindFailed as the agent
reports.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import and_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import usages
from cyborg_lite.db.arqs.attach_handles import list_handles_to_rebuild
from cyborg_lite.db.arqs.history import NO_FAILURE, describe_failure, record_step
from cyborg_lite.db.core.change import change, value_by_row
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable, Device, Service
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.arqs import DeviceNotRebuilt
from cyborg_lite.model.arqs.arqs import Actor, Event, State, next_state
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import RecoveryResult
from cyborg_lite.model.jobs import ConnectPayload, NovaEventPayload

_REBUILDING: Final = next_state(State.BOUND, Event.REBUILD)
_REBUILT: Final = next_state(_REBUILDING, Event.SUCCEED)
_LOST: Final = next_state(_REBUILDING, Event.FAIL)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Milliseconds in which the jobs of a recovery must end."""

    event: int
    connect: int


def record_host_reboot(session: Session, host: str, boot_id: str) -> bool:
    """Store a new boot id and move the ARQs that need the host to Provisioning.

    The digest is cleared, so the agent sends a report. Before that it reports which
    handles it has rebuilt.

    :param boot_id: empty: not reported
    :returns: False if the boot id is empty or already stored
    """
    if not boot_id:
        return False
    # The first boot id of a host, where the column is NULL, is no reboot.
    rebooted = and_(Service.boot_id != boot_id, Service.boot_id != '')
    agent = update(Service).where(Service.is_agent_of(host), rebooted)
    if not change(session, agent.values(boot_id=boot_id, digest=None)):
        return False
    owners = (
        select(AttachHandle.arq_uuid)
        .join(Deployable, AttachHandle.deployable_id == Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .where(Device.hostname == host, AttachHandle.needs_host.is_(True))
        .where(AttachHandle.arq_uuid.is_not(None))
    )
    arqs = [uuid for uuid in session.scalars(owners) if uuid is not None]
    bound = [row.uuid for row in _lock_arqs(session, arqs, State.BOUND)]
    _set_state(session, bound, _REBUILDING)
    record_step(session, bound, _REBUILDING, Actor.CONDUCTOR)
    return True


def record_recovery(
    session: Session, result: RecoveryResult, limits: JobLimits
) -> tuple[AllocatedHandle, ...]:
    """Move ARQs to Bound or BindFailed and write the jobs that notify Nova.

    Lost handles get a release job, as after a delete. Rebuilt handles whose drivers
    connect them get a connect job, as after a bind.

    :returns: handles that the agent must rebuild and that the result does not contain
    """
    record_host_reboot(session, result.host, result.boot_id)
    handles = list_handles_to_rebuild(session, result.host)
    if not handles:
        return ()
    rows = _lock_arqs(session, [handle.arq_uuid for handle in handles], _REBUILDING)
    arqs = {row.uuid: row for row in rows}
    handles = tuple(handle for handle in handles if handle.arq_uuid in arqs)
    rebuilt = [handle for handle in handles if handle.uuid in result.rebuilt]
    failed = [handle for handle in handles if handle.uuid in result.lost]
    rebuilt_arqs = [handle.arq_uuid for handle in rebuilt]
    _set_state(session, rebuilt_arqs, _REBUILT)
    record_step(session, rebuilt_arqs, _REBUILT, Actor.AGENT)
    _record_lost(session, failed, result.lost)
    for finished, succeeded in ((rebuilt, True), (failed, False)):
        notified = [arqs[handle.arq_uuid] for handle in finished]
        _add_nova_events(session, notified, succeeded, limits.event)
    connecting = [
        arqs[handle.arq_uuid] for handle in rebuilt if handle.uuid in result.connecting
    ]
    _add_connect_jobs(session, connecting, limits.connect, result.host)
    return tuple(
        handle for handle in handles if handle not in rebuilt and handle not in failed
    )


def _lock_arqs(session: Session, uuids: Collection[str], state: State) -> Sequence[Arq]:
    """Lock and return the ARQs in a state, in a fixed order to prevent deadlocks."""
    if not uuids:
        return ()
    statement = select(Arq).where(Arq.uuid.in_(uuids), Arq.state == state)
    return session.scalars(statement.order_by(Arq.id).with_for_update()).all()


def _set_state(session: Session, uuids: Sequence[str], state: State) -> None:
    if uuids:
        values = {'state': state, **NO_FAILURE, 'updated_at': now_utc()}
        change(session, update(Arq).where(Arq.uuid.in_(uuids)).values(**values))


def _record_lost(
    session: Session, handles: Sequence[AllocatedHandle], reasons: Mapping[str, str]
) -> None:
    """Fail the ARQs of lost handles and have the handles released.

    :param reasons: by uuid of the handle
    """
    if not handles:
        return
    errors = {
        handle.arq_uuid: DeviceNotRebuilt(reason=reasons[handle.uuid])
        for handle in handles
    }
    usages.end_periods(session, list(errors))
    failures = {uuid: describe_failure(error) for uuid, error in errors.items()}
    values = {
        column: value_by_row(
            Arq.uuid, {uuid: failure[column] for uuid, failure in failures.items()}
        )
        for column in NO_FAILURE
    }
    failed = update(Arq).where(Arq.uuid.in_(errors))
    changed = failed.values(state=_LOST, bound_at=None, updated_at=now_utc(), **values)
    change(session, changed)
    for handle in handles:
        uuid = handle.arq_uuid
        record_step(session, [uuid], _LOST, Actor.AGENT, errors[uuid])
        queue.add_job(session, queue.release_job(handle.uuid, handle.hostname, None))


def _group_by_bind(
    arqs: Sequence[Arq],
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield instance, generation and ARQs of each bind, which is of one instance."""
    by_bind: dict[tuple[str, int], list[str]] = defaultdict(list)
    for arq in arqs:
        if arq.instance_uuid is not None:
            by_bind[arq.instance_uuid, arq.generation].append(arq.uuid)
    for (instance, generation), uuids in by_bind.items():
        yield instance, generation, tuple(sorted(uuids))


def _add_connect_jobs(
    session: Session, arqs: Sequence[Arq], limit_ms: int, host: str
) -> None:
    for instance, generation, uuids in _group_by_bind(arqs):
        payload = ConnectPayload(instance, uuids, generation)
        job = queue.build_job(payload, limit_ms=limit_ms, host=host)
        queue.add_job(session, job)


def _add_nova_events(
    session: Session, arqs: Sequence[Arq], succeeded: bool, limit_ms: int
) -> None:
    for instance, generation, uuids in _group_by_bind(arqs):
        payload = NovaEventPayload(instance, uuids, succeeded, generation)
        queue.add_job(session, queue.build_job(payload, limit_ms=limit_ms))
