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
from sqlalchemy import and_, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import history, jobs, returning
from cyborg_lite.db.change import by_row, change
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
    rows = session.execute(
        select(Arq.uuid, Arq.state, Arq.project_id, Arq.instance_uuid)
        .add_columns(Arq.comes_back, Arq.device_profile_id, Arq.device_profile_name)
        .where(or_(Arq.uuid.in_(bindings), Arq.instance_uuid == instance))
    ).all()
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
    _start(session, bindings, instance)
    history.record(session, bindings, State.BIND_STARTED, Actor.CLIENT)
    return jobs.add_owned(session, job, owner)


def _start(session: Session, bindings: Mapping[str, Binding], instance: str) -> None:
    slots = {uuid: slot for slot, uuid in enumerate(sorted(bindings))}
    projects = {
        uuid: binding.project_id
        for uuid, binding in bindings.items()
        if binding.project_id is not None
    }
    values: dict[Any, Any] = {
        Arq.state: State.BIND_STARTED,
        Arq.status_reason: None,
        Arq.instance_uuid: instance,
        Arq.instance_slot: by_row(Arq.uuid, slots),
        Arq.hostname: _same_or_by_row({u: b.hostname for u, b in bindings.items()}),
        Arq.device_rp_uuid: _same_or_by_row(
            {u: b.device_rp_uuid for u, b in bindings.items()}
        ),
        Arq.updated_at: now(),
    }
    if projects:
        # Only an admin may name a project; otherwise the request stays its creator's.
        values[Arq.project_id] = by_row(Arq.uuid, projects)
    allowed = Arq.state.in_(states_that_allow(Event.BIND))
    statement = update(Arq).where(Arq.uuid.in_(bindings), allowed).values(values)
    try:
        started = change(session, statement)
    except DBDuplicateEntry:
        raise InstanceHasArqs(instance=instance) from None
    if started != len(bindings):
        raise ArqStateConflict(event=Event.BIND, state=State.BIND_STARTED)


def _same_or_by_row(values: Mapping[str, str]) -> Any:
    # A column value or an expression for it.
    different = set(values.values())
    return different.pop() if len(different) == 1 else by_row(Arq.uuid, values)


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
    still_binding = and_(Arq.uuid.in_(uuids), Arq.state == State.BIND_STARTED)
    waiting = change(
        session,
        update(Arq)
        .where(still_binding)
        .values(
            state=State.BIND_FAILED,
            status_reason=reason[:_LONGEST_REASON],
            updated_at=now(),
        ),
    )
    if not waiting:
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
    values: dict[str, Any] = {  # column values
        'state': State.BOUND,
        'status_reason': None,
        'updated_at': now(),
    }
    if project_id is not None:
        values['project_id'] = project_id
    starting = Arq.state == State.BIND_STARTED
    bound = update(Arq).where(Arq.uuid.in_(uuids), starting).values(**values)
    if change(session, bound) != len(uuids):
        raise BindCancelled()
