# SPDX-License-Identifier: Apache-2.0
"""The transactions of a bind: accept it, claim handles, end it one way or the other.

Each function is one transaction. Who wins a race is settled in the WHERE of the
statement that changes the state, by the unique owner of a handle, and by the unique
slot of a request in its instance; what is read before only explains a refusal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import and_, bindparam, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import history, jobs, returning
from cyborg_lite.db.change import change, for_each
from cyborg_lite.db.claiming import claim_handles
from cyborg_lite.db.handles import held, release_job
from cyborg_lite.db.providers import sync_job
from cyborg_lite.db.tables import Arq, AttachHandle, now
from cyborg_lite.exceptions import (
    ArqNotFound,
    ArqStateConflict,
    BindCancelled,
    InstanceHasArqs,
)
from cyborg_lite.model.arqs import (
    Actor,
    Binding,
    Event,
    Scope,
    State,
    after,
    states_that_allow,
)
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.jobs import Job, NewJob, Owner

CLAIMED: Final = 'Claimed'
"""The step of a bind whose handles are taken and now are prepared by their host."""

_LONGEST_REASON: Final = 255

_CONCERNED: Final = (
    select(Arq.uuid, Arq.state, Arq.project_id, Arq.instance_uuid)
    .add_columns(Arq.comes_back, Arq.device_profile_id, Arq.device_profile_name)
    .where(
        or_(
            Arq.uuid.in_(bindparam('uuids')),
            Arq.instance_uuid == bindparam('instance'),
        )
    )
)
_WITH_UUIDS: Final = update(Arq).where(Arq.uuid.in_(bindparam('uuids')))
_START: Final = _WITH_UUIDS.where(Arq.state.in_(states_that_allow(Event.BIND)))
_END: Final = _WITH_UUIDS.where(Arq.state == State.BIND_STARTED)


def accept(
    session: Session,
    bindings: Mapping[str, Binding],
    scope: Scope,
    job: NewJob,
    owner: Owner,
) -> Job:
    """All requests go to BindStarted and the job that binds them is written, or none.

    All bindings name one instance.

    :raises ArqNotFound: one is unknown, or of another project
    :raises InstanceHasArqs: the instance has others, or wins them at this moment
    :raises ArqStateConflict: one cannot be bound now
    :raises DeviceProfileDisabled: one is for servers that come back, and this is new
    """
    (instance,) = {binding.instance_uuid for binding in bindings.values()}
    concerned = {'uuids': list(bindings), 'instance': instance}
    rows = session.execute(_CONCERNED, concerned).all()
    states = {
        row.uuid: State(row.state)
        for row in rows
        if scope.covers(row.project_id, row.instance_uuid)
    }
    for uuid in bindings:
        if uuid not in states:
            raise ArqNotFound(uuid=uuid)
    if {row.uuid for row in rows} - set(bindings):
        raise InstanceHasArqs(instance=instance)
    for uuid in bindings:
        after(states[uuid], Event.BIND)
    returning.check(session, instance, rows)
    creators = {row.uuid: row.project_id for row in rows}
    _start(session, bindings, instance, creators)
    history.record(session, bindings, State.BIND_STARTED, Actor.CLIENT)
    return jobs.add_owned(session, job, owner)


def _start(
    session: Session,
    bindings: Mapping[str, Binding],
    instance: str,
    creators: Mapping[str, str | None],
) -> None:
    """:param creators: the projects of the requests so far"""
    values: dict[str, Any] = {  # column values, and parameters
        'state': State.BIND_STARTED,
        'status_reason': None,
        'instance_uuid': instance,
        'updated_at': now(),
        'uuids': list(bindings),
    }
    of_each: dict[str, dict[str, Any]] = {  # by column, then by request
        'instance_slot': {uuid: slot for slot, uuid in enumerate(sorted(bindings))},
        'hostname': {uuid: one.hostname for uuid, one in bindings.items()},
        'device_rp_uuid': {uuid: one.device_rp_uuid for uuid, one in bindings.items()},
    }
    if any(one.project_id is not None for one in bindings.values()):
        # Only an admin may name a project; otherwise the request stays its creator's.
        of_each['project_id'] = {
            uuid: one.project_id or creators[uuid] for uuid, one in bindings.items()
        }
    statement, alike = for_each(_START, Arq.uuid, of_each)
    try:
        started = change(session, statement, {**values, **alike})
    except DBDuplicateEntry:
        raise InstanceHasArqs(instance=instance) from None
    if started != len(bindings):
        raise ArqStateConflict(event=Event.BIND, state=State.BIND_STARTED)


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim led to."""

    job: Job
    # Empty: all requests are Bound. Else what their host must prepare first.
    handles: tuple[HeldHandle, ...] = ()


def claim(
    session: Session,
    job: Job,
    uuids: Sequence[str],
    project_id: str | None,
    bound: NewJob,
) -> Claimed:
    """Take a free handle for each request.

    If none of them needs its host all are Bound in this very transaction, and the job
    becomes ``bound``. ``project_id``: of the server's owner, None where unknown.

    :raises BindCancelled: one of them was unbound or deleted meanwhile
    :raises NoFreeHandle: the provider is unknown, gone or exhausted
    :raises HandlesContended: free ones are there, but others hold locks on them
    :raises JobLost: another conductor took over
    """
    if claim_handles(session, uuids):
        history.record(session, uuids, CLAIMED, Actor.CONDUCTOR)
        jobs.reach(session, job, CLAIMED)
        return Claimed(job, held(session, uuids))
    _become_bound(session, uuids, project_id)
    history.record(session, uuids, State.BOUND, Actor.CONDUCTOR)
    return Claimed(jobs.become(session, job, bound))


def claimed(session: Session, uuids: Sequence[str]) -> tuple[HeldHandle, ...]:
    """What an earlier attempt at the bind has taken.

    :raises BindCancelled: one of them was unbound or deleted since
    """
    starting = Arq.uuid.in_(uuids), Arq.state == State.BIND_STARTED
    if len(session.scalars(select(Arq.id).where(*starting)).all()) < len(uuids):
        raise BindCancelled()
    return held(session, uuids)


def succeed(
    session: Session,
    job: Job,
    uuids: Sequence[str],
    project_id: str | None,
    bound: NewJob,
) -> Job:
    """Their host has prepared what they hold: all are Bound.

    :raises BindCancelled: one of them was unbound or deleted meanwhile
    :raises JobLost: another conductor took over
    """
    _become_bound(session, uuids, project_id)
    history.record(session, uuids, State.BOUND, Actor.AGENT)
    of_them = AttachHandle.arq_uuid.in_(uuids)
    change(session, update(AttachHandle).where(of_them).values(preparing=False))
    return jobs.become(session, job, bound)


def fail(
    session: Session, job: Job, uuids: Sequence[str], reason: str, failed: NewJob
) -> Job | None:
    """None of them gets a device; what they hold is given back.

    The job becomes ``failed``, or ends where nobody waits for an answer any more.

    :raises JobLost: another conductor took over
    """
    for handle in held(session, uuids):
        if handle.needs_host:
            jobs.add(session, release_job(handle, job.request_id))
        if handle.host_silent:
            # What is free there, or not clean, is reserved.
            jobs.add(session, sync_job(handle.hostname))
    of_them = AttachHandle.arq_uuid.in_(uuids)
    change(session, update(AttachHandle).where(of_them).values(preparing=False))
    free = and_(of_them, AttachHandle.needs_host.is_(False))
    change(session, update(AttachHandle).where(free).values(arq_uuid=None))
    values: dict[str, Any] = {  # as above
        'state': State.BIND_FAILED,
        'status_reason': reason[:_LONGEST_REASON],
        'updated_at': now(),
        'uuids': uuids,
    }
    if not change(session, _END, values):
        jobs.finish(session, job)
        return None
    ended = and_(Arq.uuid.in_(uuids), Arq.state == State.BIND_FAILED)
    failing = session.scalars(select(Arq.uuid).where(ended))
    history.record(session, failing, State.BIND_FAILED, Actor.CONDUCTOR, reason)
    return jobs.become(session, job, failed)


def ended_so(
    session: Session, uuids: Sequence[str], instance: str, succeeded: bool
) -> tuple[str, ...]:
    """Those whose bind to the instance ended so, and that are as it left them."""
    state = State.BOUND if succeeded else State.BIND_FAILED
    theirs = and_(Arq.instance_uuid == instance, Arq.state == state)
    wanted = select(Arq.uuid).where(Arq.uuid.in_(uuids), theirs).order_by(Arq.id)
    return tuple(session.scalars(wanted))


def _become_bound(
    session: Session, uuids: Sequence[str], project_id: str | None
) -> None:
    values: dict[str, Any] = {  # column values, and parameters
        'state': State.BOUND,
        'status_reason': None,
        'updated_at': now(),
        'uuids': uuids,
    }
    if project_id is not None:
        values['project_id'] = project_id
    if change(session, _END, values) != len(uuids):
        raise BindCancelled()
