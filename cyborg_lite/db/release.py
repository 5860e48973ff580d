# SPDX-License-Identifier: Apache-2.0
"""The transactions that take a device from a request: unbind, delete, and the end.

What needs nothing on its host is free when the transaction ends. What does stays with
its request until the host has cleaned it, so that nobody else can get it meanwhile.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, and_, bindparam, delete, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import history, inventory, jobs, returning
from cyborg_lite.db.change import change
from cyborg_lite.db.handles import held, release_job
from cyborg_lite.db.providers import sync_job
from cyborg_lite.db.tables import Arq, AttachHandle, now
from cyborg_lite.exceptions import ArqNotFound, ServiceTokenRequired
from cyborg_lite.model.arqs import Actor, Event, Scope, State, after, states_that_allow
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.jobs import Job

RELEASED: Final = 'Released'
RELEASE_FAILED: Final = 'ReleaseFailed'

_LONGEST_REASON: Final = 255

_FOR_RELEASE: Final = (
    select(
        Arq.uuid, Arq.state, Arq.project_id, Arq.instance_uuid, Arq.device_profile_id
    )
    .order_by(Arq.id)
    # Held still: a bind that would end now has to wait, and then finds that they are
    # not its any more. In order, so that no two callers deadlock.
    .with_for_update()
)
_LISTED: Final = _FOR_RELEASE.where(Arq.uuid.in_(bindparam('uuids')))
_OF_INSTANCE: Final = _FOR_RELEASE.where(Arq.instance_uuid == bindparam('instance'))
_FREE: Final = (
    update(AttachHandle)
    .where(
        AttachHandle.uuid.in_(bindparam('uuids')),
        # Not from who was given it since they were read.
        AttachHandle.arq_uuid.in_(bindparam('owners')),
    )
    .values(arq_uuid=None, preparing=False)
)
_DELETE: Final = delete(Arq).where(Arq.uuid.in_(bindparam('uuids')))


def unbind(
    session: Session, uuids: Sequence[str], scope: Scope, request_id: str | None
) -> None:
    """Take what they hold; they can be bound again.

    :raises ArqNotFound: one is unknown, or out of scope; nothing is changed
    :raises ArqStateConflict: one is being deleted
    """
    rows = _locked(session, _LISTED, {'uuids': uuids}, scope)
    for uuid in uuids:
        if uuid not in {row.uuid for row in rows}:
            raise ArqNotFound(uuid=uuid)
    states = {row.uuid: after(State(row.state), Event.UNBIND) for row in rows}
    _let_go(session, uuids, request_id)
    # Those that never were bound stay as they are, and so do those whose release has
    # failed: the release is tried again.
    unbound = [uuid for uuid, state in states.items() if state is State.UNBOUND]
    if unbound:
        change(
            session,
            update(Arq)
            .where(Arq.uuid.in_(unbound))
            .values(
                state=State.UNBOUND,
                status_reason=None,
                hostname=None,
                device_rp_uuid=None,
                instance_uuid=None,
                instance_slot=None,
                updated_at=now(),
            ),
        )
        history.record(session, unbound, State.UNBOUND, Actor.CLIENT)


def delete_listed(
    session: Session,
    uuids: Sequence[str],
    scope: Scope,
    of_service: bool,
    request_id: str | None,
) -> tuple[str, ...]:
    """Delete those that are there; the others are returned.

    Those that somebody else deletes already are among the others: of two callers one
    has done it. Their release is tried again.

    :raises ServiceTokenRequired: one has an instance and the caller is no service
    """
    rows = _locked(session, _LISTED, {'uuids': uuids}, scope)
    if not of_service and any(row.instance_uuid is not None for row in rows):
        raise ServiceTokenRequired(action='Deleting a bound accelerator request')
    _delete(session, [row.uuid for row in rows], request_id)
    ours = {row.uuid for row in rows if row.state != State.DELETING}
    return tuple(sorted(set(uuids) - ours))


def delete_of_instance(
    session: Session, instance: str, scope: Scope, request_id: str | None
) -> bool:
    """Delete all that the instance has, which may be nothing.

    True: a host has something to clean, and there is a job for that.
    """
    rows = _locked(session, _OF_INSTANCE, {'instance': instance}, scope)
    returning.remember(session, instance, rows)
    return _delete(session, [row.uuid for row in rows], request_id)


def reap(session: Session, uuid: str, request_id: str | None) -> None:
    """Delete what its creator has forgotten; the row is locked."""
    _delete(session, [uuid], request_id, Actor.CONDUCTOR)


def let_go(session: Session, uuid: str, state: State, request_id: str | None) -> None:
    """Release what a request in that state should not hold; the row is locked."""
    if state is State.DELETING:
        reap(session, uuid, request_id)
    else:
        _let_go(session, [uuid], request_id)


def _locked(
    session: Session,
    wanted: Select[*tuple[Any, ...]],
    values: Mapping[str, object],  # its parameters
    scope: Scope,
) -> Sequence[Row[*tuple[Any, ...]]]:
    """The rows in scope."""
    rows = session.execute(wanted, values)
    return [row for row in rows if scope.covers(row.project_id, row.instance_uuid)]


def _delete(
    session: Session,
    uuids: Sequence[str],
    request_id: str | None,
    actor: Actor = Actor.CLIENT,
) -> bool:
    """True: hosts must clean what is deleted."""
    if not uuids:
        return False
    on_host = {handle.arq_uuid for handle in _let_go(session, uuids, request_id)}
    gone = [uuid for uuid in uuids if uuid not in on_host]
    if gone:
        change(session, _DELETE, {'uuids': gone})
    if on_host:
        # It leaves its instance at once: a server that is evacuated gets new requests
        # while the host of the old ones is still away.
        change(
            session,
            update(Arq)
            .where(Arq.uuid.in_(on_host))
            .values(
                state=State.DELETING,
                instance_uuid=None,
                instance_slot=None,
                updated_at=now(),
            ),
        )
        history.record(session, on_host, State.DELETING, actor)
    return bool(on_host)


def _let_go(
    session: Session, uuids: Sequence[str], request_id: str | None
) -> list[HeldHandle]:
    """Free what they hold, and return what their hosts must clean first."""
    handles = held(session, uuids)
    _free(session, [handle for handle in handles if not handle.needs_host])
    on_host = [handle for handle in handles if handle.needs_host]
    for handle in on_host:
        # While a bind still prepares it, that job ends by having it released.
        if not handle.preparing:
            jobs.add(session, release_job(handle, request_id))
    return on_host


def _free(session: Session, handles: Sequence[HeldHandle]) -> None:
    if not handles:
        return
    freed = {
        'uuids': [handle.uuid for handle in handles],
        'owners': [handle.arq_uuid for handle in handles],
    }
    change(session, _FREE, freed)
    for hostname in {handle.hostname for handle in handles if handle.missing}:
        inventory.forget_missing(session, hostname)
    # What is free on a silent host is reserved, and these are free now.
    for hostname in {handle.hostname for handle in handles if handle.host_silent}:
        jobs.add(session, sync_job(hostname))


def cleaned(session: Session, job: Job, handle: HeldHandle) -> None:
    """Its host is done with the handle: it is free, and a deleted request goes.

    :raises JobLost: another conductor took over
    """
    _free(session, [handle])
    mine = Arq.uuid == handle.arq_uuid
    if not change(session, delete(Arq).where(mine, Arq.state == State.DELETING)):
        failed = and_(mine, Arq.state == State.UNBIND_FAILED)
        unbound = {'state': State.UNBOUND, 'status_reason': None, 'updated_at': now()}
        change(session, update(Arq).where(failed).values(**unbound))
        history.record(session, [handle.arq_uuid], RELEASED, Actor.AGENT)
    if job.attempts > 1:
        # It was reserved when the first attempt failed.
        jobs.add(session, sync_job(handle.hostname, job.request_id))
    jobs.finish(session, job)


def not_cleaned(session: Session, handle: HeldHandle, reason: str) -> None:
    """Its host could not release the handle: say so, and keep Placement from giving
    it to the next server while that lasts."""
    jobs.add(session, sync_job(handle.hostname))
    mine = Arq.uuid == handle.arq_uuid
    state = session.scalar(select(Arq.state).where(mine).with_for_update())
    if state not in states_that_allow(Event.RELEASE_FAILED):
        return
    following = after(State(state), Event.RELEASE_FAILED)
    shown = {'state': following, 'status_reason': reason[:_LONGEST_REASON]}
    change(session, update(Arq).where(mine).values(**shown, updated_at=now()))
    history.record(session, [handle.arq_uuid], RELEASE_FAILED, Actor.AGENT, reason)
