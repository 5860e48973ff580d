# SPDX-License-Identifier: Apache-2.0
"""Notifications that wait to be sent.

A row is written in the transaction of the change that it reports. Two changes of one
object have rows in the order of their commits: the second transaction waits for the
lock of the object before it inserts its row. Without notifications the functions send
no statement.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from oslo_context import context as oslo_context
from sqlalchemy import (
    ColumnElement,
    delete,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.engine import NOTIFIES
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Arq, Lease, UsagePeriod
from cyborg_lite.db.core.tables import DeviceProfile as ProfileRow
from cyborg_lite.db.core.tables import Notification as Row
from cyborg_lite.model.arqs.arqs import STORED_STATES
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.notifications import (
    DELETED,
    STATE_CHANGED,
    USED,
    ArqPayload,
    Backlog,
    Notification,
    ObjectKind,
    Payload,
    ProfilePayload,
    UsedPayload,
    format_ms,
)
from cyborg_lite.model.profiles.device_profiles import Group

_LEASE: Final = 'notifications'
# The states of ARQs, and the steps of releases, which may change the state.
_STATE_STEPS: Final = frozenset({*STORED_STATES, 'Released', 'ReleaseFailed'})
_INSERT: Final = insert(Row).values(created_at=now_ms())
_ADD_LEASE: Final = Upsert(Lease, (Lease.name,), also={'name': Lease.name})


def is_enabled(session: Session) -> bool:
    """Return True if changes write notifications."""
    return bool(session.info.get(NOTIFIES))


def add_notifications(
    session: Session, kind: ObjectKind, action: str, payloads: Iterable[Payload]
) -> None:
    """Write notifications, if they are enabled, in one statement."""
    if not is_enabled(session):
        return
    current = oslo_context.get_current()
    request_id = None if current is None else current.request_id
    rows = [
        {
            'uuid': str(uuid4()),
            'event_type': f'{kind}.{action}',
            'payload': {**codec.dump(payload), 'request_id': request_id},
        }
        for payload in payloads
    ]
    if rows:
        change(session, _INSERT, rows)


# --- ARQs ---


def add_step(session: Session, uuids: Iterable[str], step: str) -> None:
    """Write notifications for a step of ARQs, if the step is a change of the state."""
    # Statements of a bind are not built for nothing.
    if is_enabled(session) and step in _STATE_STEPS:
        add_arqs(session, Arq.uuid.in_(list(uuids)), STATE_CHANGED)


def add_arqs(session: Session, arqs: ColumnElement[bool], action: str) -> None:
    """Write a notification for each ARQ as it is stored now.

    :param arqs: SQL that is true for the ARQs
    """
    if not is_enabled(session):
        return
    record = _DELETED_ARQ if action == DELETED else _ARQ
    rows = session.execute(record.select().where(arqs).order_by(Arq.id))
    payloads = [record.read(row) for row in rows]
    add_notifications(session, ObjectKind.ARQ, action, payloads)


_RENAMED: Final[dict[str, Any]] = {
    'device_profile': Arq.device_profile_name,
    'host': Arq.hostname,
}
_ARQ: Final = Record(
    ArqPayload, Arq, **_RENAMED, bound_at=From(format_ms, Arq.bound_at)
)
_DELETED_ARQ: Final = Record(
    ArqPayload, Arq, **_RENAMED, state=literal('Deleted'), bound_at=null()
)
_USE: Final = Record(
    UsedPayload,
    UsagePeriod,
    uuid=UsagePeriod.arq_uuid,
    device_profile=UsagePeriod.device_profile_name,
    host=UsagePeriod.hostname,
    started_at=From(format_ms, UsagePeriod.started_at),
    ended_at=From(format_ms, UsagePeriod.ended_at),
)


def add_uses(session: Session, uuids: Sequence[str]) -> None:
    """Write a notification for the last period of each ARQ whose use has just ended."""
    if not is_enabled(session):
        return
    last = (
        select(func.max(UsagePeriod.id))
        .where(UsagePeriod.arq_uuid.in_(uuids))
        .group_by(UsagePeriod.arq_uuid)
    )
    rows = session.execute(
        _USE.select()
        .join(Arq, Arq.uuid == UsagePeriod.arq_uuid)
        # Other ARQs of the call have ended their use earlier.
        .where(UsagePeriod.id.in_(last), Arq.bound_at == UsagePeriod.started_at)
        .order_by(UsagePeriod.id)
    )
    payloads = [_USE.read(row) for row in rows]
    add_notifications(session, ObjectKind.ARQ, USED, payloads)


# --- device profiles ---


def add_profiles(session: Session, profiles: ColumnElement[bool], action: str) -> None:
    """Write a notification for each device profile as it is stored now.

    :param profiles: SQL that is true for the device profiles
    """
    if not is_enabled(session):
        return
    statement = _PROFILE.select().where(profiles).order_by(ProfileRow.id)
    payloads = map(_PROFILE.read, session.execute(statement))
    add_notifications(session, ObjectKind.PROFILE, action, payloads)


def _list_classes(groups: Sequence[Mapping[str, str]]) -> list[str]:
    parsed = [Group.parse(group).requirements for group in groups]
    return sorted({name for item in parsed for name in item.resource_classes})


_PROFILE: Final = Record(
    ProfilePayload,
    ProfileRow,
    resource_classes=From(_list_classes, ProfileRow.groups),
    groups=From(lambda groups: groups, ProfileRow.groups),
)


# --- sending ---


def renew_lease(session: Session, owner: Owner) -> bool:
    """Become or remain the only sender for the duration of the lease.

    :returns: False if another conductor is the sender
    """
    values = {'owner': owner.name, 'lease_until': now_ms() + owner.lease_ms}
    is_ours = Lease.name == _LEASE
    # A later end than that of a lease that begins now: the clock of the database has
    # been set back. All conductors have leases of the same length.
    is_over = or_(
        Lease.lease_until < now_ms(), Lease.lease_until > now_ms() + owner.lease_ms
    )
    may_send = or_(Lease.owner == owner.name, is_over)
    renewed = update(Lease).where(is_ours, may_send).values(**values)
    if change(session, renewed):
        return True
    _ADD_LEASE.run(session, {'name': _LEASE, 'owner': '', 'lease_until': 0})
    return change(session, renewed) == 1


def end_lease(session: Session, owner: Owner) -> None:
    """Let another conductor send at once."""
    is_ours = Lease.name == _LEASE, Lease.owner == owner.name
    change(session, update(Lease).where(*is_ours).values(lease_until=0))


def list_oldest(session: Session, limit: int) -> tuple[Notification, ...]:
    """Return the oldest notifications, in the order in which they must be sent."""
    rows = session.execute(
        select(Row.id, Row.uuid, Row.event_type, Row.payload, Row.created_at)
        .order_by(Row.id)
        .limit(limit)
    )
    return tuple(Notification(*row) for row in rows)


def delete_notifications(session: Session, ids: Sequence[int]) -> int:
    """Delete notifications that were sent; return their number."""
    return change(session, delete(Row).where(Row.id.in_(ids))) if ids else 0


def drop_oldest(session: Session, limit: int, batch: int) -> int:
    """Delete the oldest notifications beyond the largest backlog.

    :param limit: number of notifications that may wait
    :param batch: number of notifications to delete at most
    :returns: the number of deleted notifications
    """
    excess = (session.scalar(select(func.count()).select_from(Row)) or 0) - limit
    if excess <= 0:
        return 0
    oldest = select(Row.id).order_by(Row.id).limit(min(excess, batch))
    return delete_notifications(session, session.scalars(oldest).all())


def read_backlog(session: Session) -> Backlog:
    """Return the number of notifications that wait, and the age of the oldest."""
    row = session.execute(
        select(func.count(), now_ms() - func.min(Row.created_at)).select_from(Row)
    ).one()
    return Backlog(row[0], max(0, int(row[1] or 0)) / 1000)
