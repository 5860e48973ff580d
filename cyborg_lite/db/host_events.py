# SPDX-License-Identifier: Apache-2.0
"""Host events: stored in the history of the ARQs that they affect."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db import arq_events, services
from cyborg_lite.db.tables import Arq, AttachHandle, Deployable, Device, Service
from cyborg_lite.model.arqs import Actor
from cyborg_lite.model.host_events import HostEvent


def record_host_events(
    session: Session, host: str, events: Sequence[HostEvent]
) -> tuple[int, Sequence[HostEvent]]:
    """Store new events of a host in the history of its ARQs.

    The row of the agent is locked, so events of one host are stored one call after the
    other.

    :returns: the number of the last event that was ever recorded, and the new events
    """
    agent = select(Service).where(Service.is_agent_of(host)).with_for_update()
    service = session.scalar(agent)
    if service is None:
        # The host has no rows yet, so its events affect no ARQ.
        return (events[-1].number if events else 0), events
    new = [event for event in events if event.number > service.last_event]
    if new:
        owners = _list_owners(session, host)
        existing = _list_existing_arqs(session, new)
        for event in new:
            _record(session, event, owners, existing)
        services.store_last_event(session, host, new[-1].number)
        return new[-1].number, new
    return service.last_event, new


def _record(
    session: Session,
    event: HostEvent,
    owners: Mapping[str, Sequence[str]],
    existing: frozenset[str],
) -> None:
    if event.arq_uuid is None:
        affected = list(owners.get(event.address, ()))
    else:
        affected = [event.arq_uuid] if event.arq_uuid in existing else []
    reason = event.reason or None
    arq_events.record_step(session, affected, event.kind, Actor.AGENT, reason)


def _list_owners(session: Session, host: str) -> Mapping[str, Sequence[str]]:
    """Return the ARQs that own handles of each device, by its control address."""
    rows = session.execute(
        select(Device.control_address, AttachHandle.arq_uuid)
        .join(Deployable, Deployable.device_id == Device.id)
        .join(AttachHandle, AttachHandle.deployable_id == Deployable.id)
        .where(Device.hostname == host, AttachHandle.arq_uuid.is_not(None))
        .order_by(AttachHandle.id)
    )
    owners: dict[str, list[str]] = defaultdict(list)
    for address, arq_uuid in rows:
        if arq_uuid is not None:
            owners[address].append(arq_uuid)
    return owners


def _list_existing_arqs(
    session: Session, events: Sequence[HostEvent]
) -> frozenset[str]:
    """Return the ARQs of the events that exist."""
    uuids = {event.arq_uuid for event in events if event.arq_uuid is not None}
    return frozenset(session.scalars(select(Arq.uuid).where(Arq.uuid.in_(uuids))))
