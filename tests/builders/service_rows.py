# SPDX-License-Identifier: Apache-2.0
"""Rows of services with recent and old heartbeats."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Service
from cyborg_lite.db.hosts import services
from cyborg_lite.model.hosts.services import AGENT

LONG_AGO = datetime(2020, 2, 29, 12, 0, tzinfo=UTC)


def record_heartbeat(database: Database, host: str, binary: str = AGENT) -> None:
    """Store a heartbeat."""
    database.write(services.record_heartbeat, binary, host, '0.1.0')


def expire_heartbeat(database: Database, host: str, binary: str = AGENT) -> None:
    """Store a last heartbeat that is too old."""
    record_heartbeat(database, host, binary)
    database.write(_change, host, heartbeat_at=LONG_AGO)


def mark_down(database: Database, host: str) -> None:
    """Mark a service down as a conductor does after missing heartbeats."""
    expire_heartbeat(database, host)
    database.write(_change, host, state='down')


def mark_up(database: Database, host: str) -> None:
    """Mark a service up and store a recent heartbeat."""
    record_heartbeat(database, host)
    database.write(_change, host, state='up')


def add_audited_agents(database: Database, hosts: int) -> None:
    """Add a conductor and agents that were all audited long ago, at the same time."""
    for number in range(hosts):
        record_heartbeat(database, f'compute-{number}')
    record_heartbeat(database, 'controller', 'cyborg-lite-conductor')
    database.write(_set_audit_time)


def _set_audit_time(session: Session) -> None:
    session.execute(update(Service).values(audited_at=LONG_AGO))


def _change(session: Session, /, host: str, **columns: object) -> None:
    session.execute(update(Service).where(Service.host == host).values(**columns))


def service_states(database: Database) -> dict[str, str]:
    """Return the state of each service by host."""
    return database.read(_states)


def _states(session: Session) -> dict[str, str]:
    rows = session.execute(select(Service.host, Service.state))
    return {row.host: row.state for row in rows}


def add_service_row(
    database: Database, host: str, state: str = 'up', **columns: Any
) -> str:
    """Add the row of a daemon, by default an agent; return its uuid."""
    uuid = str(uuid4())
    values = {'binary': AGENT, 'version': '1.2', **columns}
    row = Service(uuid=uuid, host=host, state=state, **values)
    database.write(lambda session: session.add(row))
    return uuid
