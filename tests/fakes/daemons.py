# SPDX-License-Identifier: Apache-2.0
"""Daemons in the database that speak, fall silent and speak again, without waiting."""

from datetime import UTC, datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import services
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Service

LONG_AGO = datetime(2020, 2, 29, 12, 0, tzinfo=UTC)


def speak(database: Database, host: str, binary: str = services.AGENT) -> None:
    """A heartbeat."""
    database.write(services.beat, binary, host, '0.1.0')


def fall_silent(database: Database, host: str, binary: str = services.AGENT) -> None:
    """The last heartbeat was long ago."""
    speak(database, host, binary)
    database.write(_change, host, heartbeat_at=LONG_AGO)


def call_down(database: Database, host: str) -> None:
    """As a conductor does that found the agent silent."""
    fall_silent(database, host)
    database.write(_change, host, state='down')


def call_up(database: Database, host: str) -> None:
    speak(database, host)
    database.write(_change, host, state='up')


def _change(session: Session, /, host: str, **columns: object) -> None:
    session.execute(update(Service).where(Service.host == host).values(**columns))


def service_states(database: Database) -> dict[str, str]:
    """By host."""
    return database.read(_states)


def _states(session: Session) -> dict[str, str]:
    rows = session.execute(select(Service.host, Service.state))
    return {row.host: row.state for row in rows}
