# SPDX-License-Identifier: Apache-2.0
"""Services: the daemons, their heartbeats, states and faults."""

from collections.abc import Collection as AnyCollection
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import ColumnElement, and_, case, delete, or_, select, tuple_, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import recovery
from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_utc, read_time_before
from cyborg_lite.db.core.query import Collection, list_page, name_columns
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import Fault as FaultRow
from cyborg_lite.db.core.tables import Service as Row
from cyborg_lite.db.devices.devices import store_telemetry
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.hosts import HostNotFound, ServiceAlive, ServiceNotFound
from cyborg_lite.model.hosts.services import (
    AGENT,
    CONDUCTOR,
    Fault,
    FaultKey,
    Heartbeat,
    HeartbeatDetails,
    Service,
    ServiceState,
)
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.queries import SORT_KEYS, Query

_SERVICES: Final = Collection(
    Row,
    filters=name_columns(Row, 'uuid', 'binary', 'state', hostname=Row.host),
    sorts={
        name: getattr(Row, 'host' if name == 'hostname' else name)
        for name in SORT_KEYS['services']
    },
)
SYNCS_PER_SECOND: Final = 20
"""Rate at which the Placement sync jobs start when many agents go down or come back."""

_NEXT: Final = {
    ServiceState.UP: ServiceState.DOWN,
    ServiceState.DOWN: ServiceState.UP,
    ServiceState.STOPPED: ServiceState.DOWN,
}
# A heartbeat ends the state STOPPED at once.
_RESUMED: Final = case(
    (Row.state == ServiceState.STOPPED, ServiceState.UP), else_=Row.state
)


def _upsert(*changed: str) -> Upsert:
    times = {'started_at': now_utc(), 'heartbeat_at': now_utc()}
    keys = [Row.host, Row.binary]
    return Upsert(Row, keys, ('heartbeat_at', *changed), computed=times)


_HEARTBEAT: Final = _upsert('version')
_START: Final = _upsert('version', 'started_at')
_NO_DETAILS: Final = HeartbeatDetails()
_SERVICE: Final = Record(Service, Row)


def list_services(session: Session, query: Query | None = None) -> tuple[Service, ...]:
    """Return the services that match the query, in one SELECT.

    :param query: None: all services
    """
    chosen = query or Query()
    return list_page(session, _SERVICE.select(), chosen, _SERVICES, _SERVICE.read)


# --- heartbeats ---


def record_start(session: Session, binary: str, host: str, version: str) -> None:
    """Store that a daemon starts now."""
    _write(session, _START, binary, host, version=version)


def record_heartbeat(session: Session, binary: str, host: str, version: str) -> None:
    """Store a heartbeat of a daemon."""
    _write(session, _HEARTBEAT, binary, host, version=version)


def record_agent_heartbeat(
    session: Session,
    host: str,
    version: str,
    digest: str,
    details: HeartbeatDetails = _NO_DETAILS,
) -> bool:
    """Store a heartbeat of an agent with its telemetry.

    One statement if digest and boot id are as stored, two more for telemetry.

    :returns: True if the agent must send a host report: the database holds another
        inventory, or that of another boot
    :raises AgentIdentityRefused: the host has another agent, which is up
    """
    is_unchanged = Row.is_agent_of(host) & (Row.digest == digest)
    if details.boot_id:
        is_unchanged = is_unchanged & (Row.boot_id == details.boot_id)
    if details.identity:
        is_unchanged = is_unchanged & (Row.identity == details.identity)
    values: dict[str, Any] = {
        'heartbeat_at': now_utc(),
        'version': version,
        'state': _RESUMED,
    }
    if details.started:
        values['started_at'] = now_utc()
    needs_report = not change(session, update(Row).where(is_unchanged).values(values))
    if needs_report:
        upsert = _START if details.started else _HEARTBEAT
        _write(session, upsert, AGENT, host, version=version)
        agents.accept_agent(session, host, details.identity, details.machine)
        recovery.record_host_reboot(session, host, details.boot_id)
    if details.telemetry:
        store_telemetry(session, {host: details.telemetry})
    return needs_report


def record_stop(session: Session, host: str, identity: str) -> bool:
    """Store that the agent of a host stops.

    :returns: False if another agent speaks for the host, or it is not up
    """
    is_own = Row.is_agent_of(host) & (Row.identity == identity)
    stop = update(Row).where(is_own, Row.state == ServiceState.UP)
    return bool(change(session, stop.values(state=ServiceState.STOPPED)))


def record_repeated_heartbeats(
    session: Session, heartbeats: AnyCollection[Heartbeat]
) -> set[str]:
    """Store heartbeats that repeat the stored values; two statements for any number.

    :returns: the hosts whose heartbeats were stored. The other heartbeats differ from
        the database, and nothing is written for them.
    """
    agents = Row.binary == AGENT
    hosts = [heartbeat.host for heartbeat in heartbeats]
    rows = session.execute(
        select(Row.host, Row.version, Row.digest, Row.boot_id, Row.identity).where(
            agents, Row.host.in_(hosts), Row.state != ServiceState.STOPPED
        )
    )
    stored = {row.host: row for row in rows}
    repeated_hosts = {
        heartbeat.host
        for heartbeat in heartbeats
        if _is_repeated(heartbeat, stored.get(heartbeat.host))
    }
    if repeated_hosts:
        statement = update(Row).where(agents, Row.host.in_(repeated_hosts))
        change(session, statement.values(heartbeat_at=now_utc()))
    return repeated_hosts


def _is_repeated(heartbeat: Heartbeat, row: Any) -> bool:
    """Check whether the heartbeat equals the stored row, which may be None."""
    if row is None:
        return False
    boot_id = row.boot_id if heartbeat.boot_id else ''
    identity = row.identity if heartbeat.identity else ''
    return heartbeat == Heartbeat(row.host, row.version, row.digest, boot_id, identity)


def request_host_job(
    session: Session, new: NewJob, host: str, *, is_refresh: bool
) -> None:
    """Write a job of a host.

    :param is_refresh: the agent sends a complete report at its next heartbeat
    :raises HostNotFound: no agent of the host is stored
    """
    if agents.find_agent(session, host) is None:
        raise HostNotFound(host=host)
    if is_refresh:
        agents.clear_digest(session, host)
    queue.add_job(session, new)


def delete_service(session: Session, uuid: str) -> None:
    """Delete a conductor that is down; a host is deleted with its agent.

    :raises ServiceNotFound: no conductor has the uuid
    :raises ServiceAlive: the conductor is up
    """
    conductor = (Row.uuid == uuid) & (Row.binary == CONDUCTOR)
    row = session.execute(select(Row.host, Row.state).where(conductor)).one_or_none()
    if row is None:
        raise ServiceNotFound(uuid=uuid)
    is_down = conductor & (Row.state == ServiceState.DOWN)
    if not change(session, delete(Row).where(is_down)):
        raise ServiceAlive(binary=CONDUCTOR, host=row.host)


# --- states ---


def limit_heartbeats(session: Session) -> None:
    """Let heartbeats end now that are later: the database clock has been set back."""
    later = update(Row).where(Row.heartbeat_at > now_utc())
    change(session, later.values(heartbeat_at=now_utc()))


def list_stale_services(session: Session, oldest: datetime) -> tuple[Service, ...]:
    """Return the services whose stored state contradicts their last heartbeat.

    :param oldest: a service without a heartbeat since then is down
    """
    stale = or_(*(_is_stale(state, oldest) for state in ServiceState))
    return _SERVICE.list(session, _SERVICE.select().where(stale).order_by(Row.id))


def switch_states(
    session: Session, services: Sequence[Service], oldest: datetime, previous: int = 0
) -> tuple[Service, ...]:
    """Switch services between up and down. For agents, write Placement sync jobs.

    At most six statements for any number of services. The jobs of many agents start
    one after the other, so that they occupy neither all workers nor Placement.

    :param previous: number of services that the caller has switched just before
    :returns: the services that were switched. For each other service a heartbeat
        arrived, or another conductor changed the state first.
    """
    uuids: set[str] = set()
    for state in ServiceState:
        stale = [service.uuid for service in services if service.state is state]
        if stale:
            uuids |= _switch_from(session, state, stale, oldest)
    switched = tuple(service for service in services if service.uuid in uuids)
    jobs = [
        (
            queue.placement_sync_job(service.host),
            1000 * ((previous + index) // SYNCS_PER_SECOND),
        )
        for index, service in enumerate(switched)
        if service.binary == AGENT
    ]
    queue.add_delayed_jobs(session, jobs)
    return switched


def _switch_from(
    session: Session, state: ServiceState, uuids: Sequence[str], oldest: datetime
) -> set[str]:
    """Switch the services that are still in a state and stale; return their uuids."""
    stale = and_(Row.uuid.in_(uuids), _is_stale(state, oldest))
    # The order in which all transactions lock the rows.
    locking = select(Row.uuid).where(stale).order_by(Row.id).with_for_update()
    locked = set(session.scalars(locking))
    if locked:
        switched = update(Row).where(Row.uuid.in_(locked))
        change(session, switched.values(state=_NEXT[state]))
    return locked


def _is_stale(state: ServiceState, oldest: datetime) -> ColumnElement[bool]:
    late = Row.heartbeat_at < oldest
    return and_(Row.state == state, ~late if state is ServiceState.DOWN else late)


def _write(
    session: Session, upsert: Upsert, binary: str, host: str, **values: str
) -> None:
    """Insert or update the row of a daemon.

    :param values: by column
    """
    # Only heartbeats contain the version; a report leaves it unchanged.
    identity = {'uuid': str(uuid4()), 'binary': binary, 'host': host, 'version': ''}
    upsert.run(session, {**identity, **values})


# --- faults ---


_FAULT_KEY: Final = FaultRow.kind, FaultRow.host, FaultRow.name
_FAULT_UPSERT: Final = Upsert(
    FaultRow,
    _FAULT_KEY,
    ('reason', 'seen_at'),
    computed={'since': now_utc(), 'seen_at': now_utc()},
)
_FAULT: Final = Record(Fault, FaultRow)


def list_faults(session: Session, limit: int) -> tuple[Fault, ...]:
    """Return the faults, the oldest first."""
    statement = _FAULT.select().order_by(FaultRow.since, FaultRow.id).limit(limit)
    return _FAULT.list(session, statement)


def record_faults(
    session: Session,
    faults: AnyCollection[Fault],
    former: AnyCollection[FaultKey],
    lifetime: float,
) -> None:
    """Store faults that exist now, and delete those that have ended.

    :param former: keys of faults that have ended
    :param lifetime: seconds after which a fault that was not seen again has ended
    """
    if former:
        change(session, delete(FaultRow).where(tuple_(*_FAULT_KEY).in_([*former])))
    # All conductors lock the rows in this order.
    names = 'kind', 'host', 'name', 'reason'
    rows = [{name: getattr(fault, name) for name in names} for fault in faults]
    if rows:
        _FAULT_UPSERT.run(session, sorted(rows, key=lambda row: tuple(row.values())))
    # Faults that outlast a stop of all conductors keep their age.
    is_old = FaultRow.seen_at < read_time_before(session, lifetime)
    if session.scalar(select(FaultRow.id).where(is_old).limit(1)) is not None:
        change(session, delete(FaultRow).where(is_old))
