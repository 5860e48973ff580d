# SPDX-License-Identifier: Apache-2.0
"""A host was booted: what needed it is Provisioning until the agent has rebuilt it."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import and_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import history, jobs
from cyborg_lite.db.change import by_row, change
from cyborg_lite.db.handles import being_rebuilt, release_job
from cyborg_lite.db.services import agent_of
from cyborg_lite.db.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    Service,
    now,
)
from cyborg_lite.model.arqs import Actor, Event, State, after
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import Outcome
from cyborg_lite.model.jobs import Kind, NewJob

_LONGEST_REASON: Final = 255
_REBUILDING: Final = after(State.BOUND, Event.REBUILD)
_REBUILT: Final = after(_REBUILDING, Event.SUCCEED)
_LOST: Final = after(_REBUILDING, Event.FAIL)


def notice_boot(session: Session, host: str, boot_id: str) -> bool:
    """If that is news, nobody can vouch for what the host had prepared before.

    The agent is asked for its inventory, and tells first what it has rebuilt. False:
    it is no news, or the host does not say when it was booted.
    """
    if not boot_id:
        return False
    other = and_(Service.boot_id != boot_id, Service.boot_id != '')  # and not NULL
    noticed = update(Service).where(agent_of(host), other)
    if not change(session, noticed.values(boot_id=boot_id, digest=None)):
        return False
    on_host = (
        select(AttachHandle.arq_uuid)
        .join(Deployable, AttachHandle.deployable_id == Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .where(Device.hostname == host, AttachHandle.needs_host.is_(True))
        .where(AttachHandle.arq_uuid.is_not(None))
    )
    holders = [uuid for uuid in session.scalars(on_host) if uuid is not None]
    those = [row.uuid for row in _locked(session, holders, State.BOUND)]
    _move(session, those, _REBUILDING)
    history.record(session, those, _REBUILDING, Actor.CONDUCTOR)
    return True


def settle(
    session: Session, outcome: Outcome, event_limit_ms: int
) -> tuple[HeldHandle, ...]:
    """Requests are Bound again, or failed, and Nova is told by jobs.

    What was lost is released by its host as any other. Returned is what the agent has
    to rebuild besides: it said nothing of it.
    """
    notice_boot(session, outcome.host, outcome.boot_id)
    handles = being_rebuilt(session, outcome.host)
    if not handles:
        return ()
    rows = _locked(session, [one.arq_uuid for one in handles], _REBUILDING)
    instances = {row.uuid: row.instance_uuid for row in rows}
    handles = tuple(one for one in handles if one.arq_uuid in instances)
    rebuilt = [one for one in handles if one.uuid in outcome.rebuilt]
    lost = [one for one in handles if one.uuid in outcome.lost]
    _bound_again(session, [one.arq_uuid for one in rebuilt])
    _fail(session, lost, outcome.lost)
    for those, succeeded in ((rebuilt, True), (lost, False)):
        told = {one.arq_uuid: instances[one.arq_uuid] for one in those}
        _tell_nova(session, told, succeeded, event_limit_ms)
    return tuple(one for one in handles if one not in rebuilt and one not in lost)


def _locked(session: Session, uuids: Collection[str], state: State) -> Sequence[Arq]:
    """Those still in that state, held still; in order, so that nobody deadlocks."""
    if not uuids:
        return ()
    wanted = select(Arq).where(Arq.uuid.in_(uuids), Arq.state == state)
    return session.scalars(wanted.order_by(Arq.id).with_for_update()).all()


def _move(session: Session, uuids: Sequence[str], state: State) -> None:
    if uuids:
        values = {'state': state, 'status_reason': None, 'updated_at': now()}
        change(session, update(Arq).where(Arq.uuid.in_(uuids)).values(**values))


def _bound_again(session: Session, uuids: Sequence[str]) -> None:
    _move(session, uuids, _REBUILT)
    history.record(session, uuids, _REBUILT, Actor.AGENT)


def _fail(
    session: Session, handles: Sequence[HeldHandle], reasons: Mapping[str, str]
) -> None:
    if not handles:
        return
    why = {one.arq_uuid: reasons[one.uuid][:_LONGEST_REASON] for one in handles}
    values = {'state': _LOST, 'updated_at': now()}
    failed = update(Arq).where(Arq.uuid.in_(why))
    change(session, failed.values(status_reason=by_row(Arq.uuid, why), **values))
    for handle in handles:
        history.record(
            session, [handle.arq_uuid], _LOST, Actor.AGENT, why[handle.arq_uuid]
        )
        jobs.add(session, release_job(handle, None))


def _tell_nova(
    session: Session,
    instances: Mapping[str, str | None],
    succeeded: bool,
    limit_ms: int,
) -> None:
    """:param instances: by request"""
    of_instance: dict[str, list[str]] = defaultdict(list)
    for uuid, instance in instances.items():
        if instance is not None:
            of_instance[instance].append(uuid)
    for instance, uuids in of_instance.items():
        payload = {'instance': instance, 'arqs': sorted(uuids), 'succeeded': succeeded}
        jobs.add(session, NewJob(Kind.NOVA_EVENT, payload, limit_ms=limit_ms))
