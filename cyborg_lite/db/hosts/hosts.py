# SPDX-License-Identifier: Apache-2.0
"""Hosts: what they have, their events, maintenance, and removal with all rows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from oslo_db.exception import RetryRequest
from sqlalchemy import (
    ColumnElement,
    and_,
    delete,
    func,
    or_,
    select,
    union,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs.history import NO_FAILURE, RELEASED, record_step
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Attribute,
    Deployable,
    Device,
    Job,
    Service,
    now,
)
from cyborg_lite.db.devices import cleanings, hold
from cyborg_lite.db.inventory import agents, device_events
from cyborg_lite.db.inventory.handles import list_owners
from cyborg_lite.db.jobs import administration, operations, outbox, queue
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.errors.arqs import HandlesContended
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import HostChanged, HostInUse, HostNotFound, ServiceAlive
from cyborg_lite.model import cursors
from cyborg_lite.model.arqs.arqs import Actor, State
from cyborg_lite.model.cursors import Cursor
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.events import DeviceEventKind
from cyborg_lite.model.hosts.events import HostEvent, HostEventKind
from cyborg_lite.model.hosts.services import AGENT, HostSummary, ServiceState
from cyborg_lite.model.notifications import DELETED
from cyborg_lite.model.operations import NewOperation, OperationKind
from cyborg_lite.model.queries import SORT_KEYS, Page, Query
from cyborg_lite.model.text import format_value, is_storable

_MAX_NAMED_ARQS: Final = 10  # in the text of an error

# No instance uses the handle of such an ARQ.
_WAITS_FOR_CLEANING: Final = or_(
    Arq.instance_uuid.is_(None), Arq.state == State.BIND_FAILED
)


# Hosts have no table: a host has an agent or devices.
_NAMES: Final = union(
    select(Service.host.label('name')).where(Service.binary == AGENT),
    select(Device.hostname),
).subquery('hosts')
_NAME: Final = _NAMES.c.name


def _count(*conditions: ColumnElement[bool]) -> Any:
    """Return SQL for the number of rows of one table that belong to the host."""
    return select(func.count()).where(*conditions).correlate(_NAMES).scalar_subquery()


_ON_HOST: Final = Device.hostname == _NAME
_SUMMARY: Final = Record(
    HostSummary,
    Service,
    name=_NAME,
    agent=Service.state,
    devices=_count(_ON_HOST),
    maintaining=_count(_ON_HOST, Device.status == DeviceStatus.MAINTAINING),
    arqs=_count(Arq.hostname == _NAME, Arq.instance_uuid.is_not(None)),
)
_FILTERS: Final = {'name': _NAME, 'agent': Service.state}
_ANY: Final = Query()


def list_hosts(session: Session, query: Query = _ANY) -> tuple[HostSummary, ...]:
    """Return the hosts with an agent or devices that match, in one SELECT.

    :param query: filters ``name`` and ``agent``; the only sort key is ``name``
    :raises InvalidInput: an unknown sort key, or a marker that is no cursor of hosts
    """
    if query.sort_key not in (None, *SORT_KEYS['hosts']):
        raise InvalidInput(reason=f'Unknown sort key {format_value(query.sort_key)}.')
    statement = _SUMMARY.select().select_from(_NAMES)
    statement = statement.outerjoin(Service, Service.is_agent_of(_NAME))
    for field, values in query.filters.items():
        storable = [value for value in values if is_storable(value)]
        statement = statement.where(_FILTERS[field].in_(storable))
    if query.cursor or query.marker:
        last = _read_last_name(query)
        is_later = last > _NAME if query.descending else last < _NAME
        statement = statement.where(is_later)
    order = _NAME.desc() if query.descending else _NAME
    rows = session.execute(statement.order_by(order).limit(query.limit))
    summaries = tuple(map(_SUMMARY.read, rows))
    if not query.needs_cursor:
        return summaries
    return Page.build(summaries, _build_cursor(summaries, query))


def _read_last_name(query: Query) -> str:
    cursor = cursors.decode(query.cursor or query.marker or '')
    position = cursor.collection, cursor.descending
    if position != ('hosts', query.descending) or not isinstance(cursor.value, str):
        raise InvalidInput(reason='The marker is of another list or sort_dir.')
    return cursor.value


def _build_cursor(summaries: Sequence[HostSummary], query: Query) -> str | None:
    if not summaries or len(summaries) != query.limit:
        return None
    last = summaries[-1].name
    return cursors.encode(Cursor('hosts', None, query.descending, last, 0))


def set_status(
    session: Session,
    host: str,
    status: DeviceStatus,
    reason: str = '',
    expected: HostSummary | None = None,
) -> int:
    """Set the status of all devices of a host, and write a Placement sync job.

    No device is enabled while a job changes it. At the end of the change, the job
    enables the devices that it has put into maintenance.

    :param expected: the host whose devices must be as many, with as many in
        maintenance; None: they are not compared
    :returns: the number of devices whose status has changed
    :raises HostNotFound: the host has neither an agent nor devices
    :raises HostChanged: the devices of the host, or their status, have changed
    """
    _check_known(session, host)
    if expected is not None:
        devices = select(Device.status).where(Device.hostname == host)
        statuses = session.scalars(devices.order_by(Device.id).with_for_update()).all()
        maintaining = list(statuses).count(DeviceStatus.MAINTAINING)
        if (len(statuses), maintaining) != (expected.devices, expected.maintaining):
            raise HostChanged(host=host)
    values = {'status': status, 'status_reason': reason, 'updated_at': now()}
    differs = (Device.hostname == host) & (Device.status != status)
    if status is DeviceStatus.ENABLED:
        differing = select(Device.id).where(differs).order_by(Device.id)
        session.execute(differing.with_for_update())  # so that no hold begins
        differs &= Device.id.not_in(hold.list_changing(session))
    kind, value = DeviceEventKind.STATUS_CHANGED, status.value
    device_events.add_events(session, differs, kind, value=value, reason=reason)
    changed = change(session, update(Device).where(differs).values(**values))
    if changed:
        queue.add_job(session, queue.placement_sync_job(host))
    return changed


def list_changing_devices(session: Session, host: str) -> tuple[str, ...]:
    """Return the uuids of the devices of a host in maintenance that jobs change.

    ``set_status`` does not enable these devices.
    """
    statement = (
        select(Device.uuid)
        .where(
            Device.hostname == host,
            Device.status == DeviceStatus.MAINTAINING,
            Device.id.in_(hold.list_changing(session)),
        )
        .order_by(Device.id)
    )
    return tuple(session.scalars(statement))


def forget_host(
    session: Session, host: str, operation: NewOperation | None = None
) -> tuple[str, ...]:
    """Delete a host with its devices, handles, jobs and agent.

    A handle that waits for its host to clean it is deleted too: the device is gone. The
    transaction writes a Placement sync job, which empties the providers, and a job that
    deletes them later.

    :param operation: that ends with the sync job; None: there is none
    :returns: the uuids of the providers of the host
    :raises HostNotFound: the host has neither an agent nor devices
    :raises ServiceAlive: the agent of the host is up, and would report it again
    :raises HostInUse: ARQs of instances use the host
    """
    _check_known(session, host)
    agent = Service.is_agent_of(host)
    state = session.scalar(select(Service.state).where(agent).with_for_update())
    if state == ServiceState.UP:
        raise ServiceAlive(binary=AGENT, host=host)
    _check_unused(session, host)
    handles = _read_column(session, AttachHandle.uuid, host)
    providers = _read_column(session, Deployable.rp_uuid, host)
    _delete_handles(session, host, handles)
    kinds = OperationKind.RELEASE, OperationKind.CLEANING
    of_handle = and_(Job.kind.in_(kinds), Job.key.in_(handles))
    of_host = and_(Job.kind == OperationKind.RECONCILE, Job.key == host)
    jobs = or_(of_handle, of_host)
    administration.delete_jobs(session, jobs, 'The host was removed.')
    _delete_devices(session, host)
    change(session, delete(Service).where(agent))
    sync = queue.placement_sync_job(host, deep=True)
    queue.add_job(session, replace(sync, operation=operation))
    if operation is not None:
        operations.record_step(session, [operation.uuid], 'deleting-records')
    queue.add_removal_job(session, host)
    return tuple(filter(None, providers))


def _check_known(session: Session, host: str) -> None:
    if not device_owners.is_known_host(session, host):
        raise HostNotFound(host=host)


def _check_unused(session: Session, host: str) -> None:
    statement = (
        select(Arq.uuid, Arq.instance_uuid)
        .outerjoin(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
        .outerjoin(Deployable, Deployable.id == AttachHandle.deployable_id)
        .outerjoin(Device, Device.id == Deployable.device_id)
        .where(
            Arq.instance_uuid.is_not(None),
            Arq.state != State.BIND_FAILED,  # the ARQ uses no host
            or_(Arq.hostname == host, Device.hostname == host),
        )
        .order_by(Arq.id)
    )
    arqs = session.execute(statement).all()
    if arqs:
        listing = ', '.join(
            f'{uuid} of instance {instance}'
            for uuid, instance in arqs[:_MAX_NAMED_ARQS]
        )
        hidden_count = len(arqs) - _MAX_NAMED_ARQS
        suffix = f' and {hidden_count} more' if hidden_count > 0 else ''
        raise HostInUse(host=host, arqs=f'{listing}{suffix}')


# Any: the type of the column.
def _read_column(session: Session, column: Any, host: str) -> list[Any]:
    """Return the values of a column of the handles or deployables of a host."""
    statement = select(column).select_from(Deployable)
    statement = statement.join(Device, Deployable.device_id == Device.id)
    if column.class_ is AttachHandle:
        statement = statement.join(AttachHandle)
    return list(session.scalars(statement.where(Device.hostname == host)))


def _delete_handles(session: Session, host: str, handles: Collection[str]) -> None:
    """Delete the handles of a host and the ARQs that wait for their release.

    :raises RetryRequest: a bind has claimed a handle since the check
    """
    if not handles:
        return
    owners = list(
        session.scalars(
            select(Arq.uuid)
            .join(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
            .where(AttachHandle.uuid.in_(handles), _WAITS_FOR_CLEANING)
            .with_for_update()
        )
    )
    free = or_(AttachHandle.arq_uuid.is_(None), AttachHandle.arq_uuid.in_(owners))
    statement = delete(AttachHandle).where(AttachHandle.uuid.in_(handles), free)
    if change(session, statement) != len(handles):
        raise RetryRequest(HandlesContended())
    if not owners:
        return
    owner = Arq.uuid.in_(owners)
    # No host cleans the handles of failed releases any more.
    failed = owner & (Arq.state == State.UNBIND_FAILED)
    uuids = list(session.scalars(select(Arq.uuid).where(failed)))
    if uuids:
        values = {'state': State.UNBOUND, **NO_FAILURE, 'updated_at': now_utc()}
        change(session, update(Arq).where(Arq.uuid.in_(uuids)).values(**values))
        record_step(session, uuids, RELEASED, Actor.CONDUCTOR)
    is_deleted = and_(owner, Arq.state == State.DELETING)
    outbox.add_arqs(session, is_deleted, DELETED)
    change(session, delete(Arq).where(is_deleted))


def _delete_devices(session: Session, host: str) -> None:
    deployables = _read_column(session, Deployable.id, host)
    if deployables:
        attributes = Attribute.deployable_id.in_(deployables)
        change(session, delete(Attribute).where(attributes))
        # Databases check foreign keys after each row.
        children = Deployable.id.in_(deployables)
        unlinked = {'parent_id': None, 'root_id': None}
        change(session, update(Deployable).where(children).values(**unlinked))
        change(session, delete(Deployable).where(children))
    on_host = Device.hostname == host
    kind, reason = DeviceEventKind.REMOVED, 'The host was removed.'
    device_events.add_events(session, on_host, kind, reason=reason)
    change(session, delete(Device).where(on_host))


# --- events that agents report ---


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
        on_host = Device.hostname == host
        owners = list_owners(session, Device.control_address, on_host)
        existing = _list_arqs_of_events(session, host, new)
        for event in new:
            _record(session, host, event, owners, existing)
        agents.store_last_event(session, host, new[-1].number)
        return new[-1].number, new
    return service.last_event, new


def _record(
    session: Session,
    host: str,
    event: HostEvent,
    owners: Mapping[str, Sequence[str]],
    existing: frozenset[str],
) -> None:
    if event.arq_uuid is None:
        affected = list(owners.get(event.address, ()))
    else:
        affected = [event.arq_uuid] if event.arq_uuid in existing else []
    is_device = Device.control_address == event.address
    on_device = and_(Device.hostname == host, is_device)
    if event.kind is HostEventKind.QUARANTINE or (
        event.kind is HostEventKind.RESET
        and not cleanings.request_reset(session, on_device)
    ):
        device_events.quarantine(session, on_device, event.reason)
    elif event.kind is HostEventKind.NOTED:
        kind = DeviceEventKind.NOTED
        device_events.add_events(session, on_device, kind, reason=event.reason)
    error = DriverError(reason=event.reason) if event.reason else None
    record_step(session, affected, event.kind, Actor.AGENT, error)


def _list_arqs_of_events(
    session: Session, host: str, events: Sequence[HostEvent]
) -> frozenset[str]:
    """Return the ARQs of the events, except those on other hosts.

    An agent must not write to the history of any ARQ. An ARQ that was unbound has no
    host, and its last host may still report the release.
    """
    uuids = {event.arq_uuid for event in events if event.arq_uuid is not None}
    on_host = or_(Arq.hostname == host, Arq.hostname.is_(None))
    return frozenset(
        session.scalars(select(Arq.uuid).where(Arq.uuid.in_(uuids), on_host))
    )
