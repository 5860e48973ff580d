# SPDX-License-Identifier: Apache-2.0
"""The daemons: who is there, since when, and what inventory each agent has told."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import ColumnElement, and_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.clock import now_utc
from cyborg_lite.db.query import Collection, page
from cyborg_lite.db.reading import Rows, filled, readable
from cyborg_lite.db.tables import Service as Row
from cyborg_lite.db.upsert import Upsert
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import Service, ServiceState

AGENT: Final = 'cyborg-lite-agent'
CONDUCTOR: Final = 'cyborg-lite-conductor'

_SERVICES: Final = Collection(
    Row,
    filters={
        'uuid': Row.uuid,
        'binary': Row.binary,
        'host': Row.host,
        'state': Row.state,
    },
    sorts={
        'uuid': Row.uuid,
        'binary': Row.binary,
        'host': Row.host,
        'state': Row.state,
        'started_at': Row.started_at,
        'heartbeat_at': Row.heartbeat_at,
    },
)


def _upsert(*changed: str) -> Upsert:
    times = {'started_at': now_utc(), 'heartbeat_at': now_utc()}
    keys = [Row.host, Row.binary]
    return Upsert(Row, keys, ('heartbeat_at', *changed), computed=times)


_BEAT: Final = _upsert('version')
_START: Final = _upsert('version', 'started_at')
_REPORT: Final = _upsert('digest', 'boot_id')


def beat(session: Session, binary: str, host: str, version: str) -> None:
    """The daemon lives."""
    _tell(session, _BEAT, binary, host, version=version)


def start(session: Session, binary: str, host: str, version: str) -> None:
    """The daemon lives since now."""
    _tell(session, _START, binary, host, version=version)


def beat_agent(
    session: Session, host: str, version: str, digest: str, boot_id: str = ''
) -> bool:
    """The agent lives. True: we hold another inventory, or one of another boot.

    :param boot_id: empty: the host does not say
    """
    held = agent_of(host) & (Row.digest == digest)
    if boot_id:
        held = held & (Row.boot_id == boot_id)
    alive = update(Row).where(held).values(heartbeat_at=now_utc(), version=version)
    if change(session, alive):
        return False
    beat(session, AGENT, host, version)
    return True


def digest_of(session: Session, host: str) -> str | None:
    """Of the inventory that we hold of a host; None: we hold none that counts."""
    return session.scalar(select(Row.digest).where(agent_of(host)))


def held(session: Session, host: str) -> tuple[str | None, str | None]:
    """Digest and boot of the inventory that we hold; None: we hold none that counts."""
    wanted = select(Row.digest, Row.boot_id).where(agent_of(host))
    row = session.execute(wanted).one_or_none()
    return (None, None) if row is None else (row.digest, row.boot_id)


def keep_digest(session: Session, host: str, digest: str, boot_id: str) -> None:
    """The inventory with that digest is about to be stored.

    Whoever does this keeps the row until the transaction ends, so that reports of one
    host are stored one after the other.
    """
    _tell(session, _REPORT, AGENT, host, digest=digest, boot_id=boot_id)


def keep_last_event(session: Session, host: str, number: int) -> None:
    """All events of the host up to that number were heard."""
    change(session, update(Row).where(agent_of(host)).values(last_event=number))


def forget_digest(session: Session, host: str) -> None:
    """Ask the agent for its whole inventory, with its next heartbeat."""
    change(session, update(Row).where(agent_of(host)).values(digest=None))


def listed(session: Session, query: Query | None = None) -> tuple[Service, ...]:
    """Those that fit, in one SELECT; all, where nothing is asked.

    :raises InvalidInput: an unknown filter, sort key or marker
    """

    def read(part: Query) -> tuple[Rows, Iterable[Service]]:
        rows = page(session, select(Row), part, _SERVICES)
        return rows, readable(rows, service)

    return filled(query or Query(), read)


def service(row: Row) -> Service:
    return Service(
        uuid=row.uuid,
        binary=row.binary,
        host=row.host,
        version=row.version,
        state=ServiceState(row.state),
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        digest=row.digest,
        boot_id=row.boot_id,
    )


def agent_of(hostname: Any) -> ColumnElement[bool]:
    """The row of a host's agent; the host is given, or is any column."""
    return and_(Row.binary == AGENT, Row.host == hostname)


def _tell(
    session: Session, what: Upsert, binary: str, host: str, **values: str
) -> None:
    """:param values: by column"""
    # The version is known from a heartbeat, not from a report.
    identity = {'uuid': str(uuid4()), 'binary': binary, 'host': host, 'version': ''}
    what.run(session, {**identity, **values})
