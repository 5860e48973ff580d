# SPDX-License-Identifier: Apache-2.0
"""What happened on hosts, as far as it concerns requests: a part of their history."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db import history, services
from cyborg_lite.db.services import agent_of
from cyborg_lite.db.tables import Arq, AttachHandle, Deployable, Device, Service
from cyborg_lite.model.arqs import Actor
from cyborg_lite.model.host_events import HostEvent


def hear(
    session: Session, host: str, events: Sequence[HostEvent]
) -> tuple[int, Sequence[HostEvent]]:
    """Those that are news, kept; with the number of the last that was ever heard.

    One caller at a time for each host: the row of its agent is locked.
    """
    wanted = select(Service).where(agent_of(host)).with_for_update()
    service = session.scalar(wanted)
    if service is None:
        # Known by nothing yet: there is nobody whom it could concern.
        return (events[-1].number if events else 0), events
    new = [event for event in events if event.number > service.last_event]
    if new:
        holders = _holders(session, host)
        alive = _alive(session, new)
        for event in new:
            _keep(session, event, holders, alive)
        services.keep_last_event(session, host, new[-1].number)
        return new[-1].number, new
    return service.last_event, new


def _keep(
    session: Session,
    event: HostEvent,
    holders: Mapping[str, Sequence[str]],
    alive: frozenset[str],
) -> None:
    if event.arq_uuid is None:
        concerned = list(holders.get(event.address, ()))
    else:
        concerned = [event.arq_uuid] if event.arq_uuid in alive else []
    history.record(session, concerned, event.kind, Actor.AGENT, event.reason or None)


def _holders(session: Session, host: str) -> Mapping[str, Sequence[str]]:
    """Who holds a part of which device, by its address."""
    rows = session.execute(
        select(Device.address, AttachHandle.arq_uuid)
        .join(Deployable, Deployable.device_id == Device.id)
        .join(AttachHandle, AttachHandle.deployable_id == Deployable.id)
        .where(Device.hostname == host, AttachHandle.arq_uuid.is_not(None))
        .order_by(AttachHandle.id)
    )
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row.address].append(row.arq_uuid)
    return found


def _alive(session: Session, events: Sequence[HostEvent]) -> frozenset[str]:
    """Of the requests that are named, those that are there."""
    named = {event.arq_uuid for event in events if event.arq_uuid is not None}
    return frozenset(session.scalars(select(Arq.uuid).where(Arq.uuid.in_(named))))
