# SPDX-License-Identifier: Apache-2.0
"""Which daemons have gone silent and which are back, by the clock of the database."""

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import jobs, services
from cyborg_lite.db.change import change
from cyborg_lite.db.providers import sync_job
from cyborg_lite.db.tables import Service as Row
from cyborg_lite.model.services import Service, ServiceState

_OPPOSITE: Final = {
    ServiceState.UP: ServiceState.DOWN,
    ServiceState.DOWN: ServiceState.UP,
}


def misjudged(session: Session, oldest: datetime) -> tuple[Service, ...]:
    """Those whose state is not what their heartbeat says; on most days none.

    :param oldest: a heartbeat before this moment is of a daemon that is silent
    """
    wanted = or_(*(_wrong(state, oldest) for state in ServiceState))
    rows = session.scalars(select(Row).where(wanted).order_by(Row.id))
    return tuple(map(services.service, rows))


def turn(session: Session, service: Service, oldest: datetime) -> bool:
    """Give it the other state, and call for Placement to follow if it is an agent.

    False: it is not true any more, or another conductor was faster.
    """
    still = and_(Row.uuid == service.uuid, _wrong(service.state, oldest))
    turned = update(Row).where(still).values(state=_OPPOSITE[service.state])
    if not change(session, turned):
        return False
    if service.binary == services.AGENT:
        jobs.add(session, sync_job(service.host))
    return True


def _wrong(state: ServiceState, oldest: datetime) -> ColumnElement[bool]:
    silent = Row.heartbeat_at < oldest
    return and_(Row.state == state, silent if state is ServiceState.UP else ~silent)
