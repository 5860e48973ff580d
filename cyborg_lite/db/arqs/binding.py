# SPDX-License-Identifier: Apache-2.0
"""Transactions of a bind: accept it, claim handles, complete or fail it.

Each function is one transaction. Races are decided by the WHERE of the statement that
changes the state, by the unique owner of a handle, and by the unique slot of an ARQ in
its instance. Values that were read before only explain an error.

A function that changes a job raises ``JobLost`` if this process has lost its lease.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import Update, bindparam, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import release
from cyborg_lite.db.arqs.attach_handles import (
    list_handles_of_arqs,
    list_handles_of_bind,
)
from cyborg_lite.db.arqs.claiming import Allocated, claim_handles
from cyborg_lite.db.arqs.history import NO_FAILURE, describe_failure, record_step
from cyborg_lite.db.core.change import change, values_by_row
from cyborg_lite.db.core.clock import now_ms, now_utc
from cyborg_lite.db.core.incarnations import IS_QUARANTINED
from cyborg_lite.db.core.tables import Arq, AttachHandle
from cyborg_lite.db.inventory.handles import GENERATION_PARAMETER, IS_CURRENT_BIND
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.profiles import former_servers
from cyborg_lite.errors.arqs import (
    ArqNotFound,
    ArqStateConflict,
    BindCancelled,
    HandlesNotConfirmed,
    InstanceHasArqs,
)
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import DatabaseQuarantined
from cyborg_lite.model.arqs.arqs import (
    Actor,
    Binding,
    Event,
    Scope,
    State,
    next_state,
    states_that_allow,
)
from cyborg_lite.model.devices.devices import AllocatedHandle, ConfirmedHandle
from cyborg_lite.model.jobs import (
    Job,
    NewJob,
    NovaEventPayload,
    Owner,
    add_bind_generation,
    name_subject,
    read_bind_generation,
)

CLAIMED: Final = 'Claimed'
"""Step of a bind that has claimed handles, which the host prepares now."""

_ARQS: Final = select(
    Arq.uuid,
    Arq.state,
    Arq.project_id,
    Arq.instance_uuid,
    Arq.generation,
    Arq.for_former_server,
    Arq.device_profile_id,
    Arq.device_profile_name,
    Arq.alternatives.is_not(None).label('has_alternatives'),
    IS_QUARANTINED.label('is_quarantined'),
).where(
    or_(
        Arq.uuid.in_(bindparam('uuids')),
        Arq.instance_uuid == bindparam('instance'),
    )
)
_BY_UUID: Final = (
    update(Arq)
    .where(Arq.uuid.in_(bindparam('uuids')))
    # The audit compares it with the clock of the database.
    .values(updated_at=now_utc())
)
_START: Final = _BY_UUID.where(
    Arq.state.in_(states_that_allow(Event.BIND)),
    # Another bind may have been accepted and ended since the ARQ was read.
    Arq.generation < bindparam(GENERATION_PARAMETER),
)
_END: Final = _BY_UUID.where(Arq.state == State.BIND_STARTED, IS_CURRENT_BIND)
# The use of the unit begins; see usages.py.
_END_BOUND: Final = _END.values(bound_at=now_ms())
_UUIDS: Final = (
    select(Arq.uuid).where(Arq.uuid.in_(bindparam('uuids'))).order_by(Arq.id)
)
# Locked before the handles, as a claim and a release do; see claiming.py.
_LOCK: Final = _UUIDS.with_for_update()
_BEING_BOUND: Final = _UUIDS.where(Arq.state == State.BIND_STARTED, IS_CURRENT_BIND)
_BY_OUTCOME: Final = _UUIDS.where(
    Arq.instance_uuid == bindparam('instance'),
    Arq.state == bindparam('state'),
    IS_CURRENT_BIND,
)


def accept_bind(
    session: Session,
    bindings: Mapping[str, Binding],
    scope: Scope,
    job: NewJob,
    owner: Owner,
) -> Job:
    """Move all ARQs to BindStarted and add the job that binds them, or do nothing.

    ARQs of an earlier bind of the instance that has failed are deleted: Nova keeps
    them after a failed unshelve.

    :param bindings: by uuid of the ARQ, all of one instance
    :param owner: the process that runs the job at once
    :raises ArqNotFound: an ARQ does not exist or is out of scope
    :raises InstanceHasArqs: the instance has other ARQs, or gets them concurrently
    :raises ArqStateConflict: the state of an ARQ does not allow a bind
    :raises DeviceProfileDisabled: an ARQ is for former servers only, and the
        instance is none
    :raises DatabaseQuarantined: the database may lack binds of other instances
    """
    new_job = _accept(session, bindings, scope, job)
    running = queue.add_running_job(session, new_job, owner)
    # After the operation, which shows the steps since its creation.
    record_step(session, bindings, State.BIND_STARTED, Actor.CLIENT)
    return running


def accept_waiting_bind(
    session: Session, bindings: Mapping[str, Binding], scope: Scope, job: NewJob
) -> None:
    """Do the same as ``accept_bind`` with a job that any conductor leases."""
    queue.add_job(session, _accept(session, bindings, scope, job))
    record_step(session, bindings, State.BIND_STARTED, Actor.CLIENT)


def _accept(
    session: Session, bindings: Mapping[str, Binding], scope: Scope, job: NewJob
) -> NewJob:
    """Move all ARQs to BindStarted; return the job with the generation of the bind."""
    (instance,) = {binding.instance_uuid for binding in bindings.values()}
    requested, has_earlier = _list_bindable(session, bindings, instance, scope)
    if has_earlier:
        release.delete_failed_arqs(session, instance, list(bindings), job.request_id)
    generation: int = max(row.generation for row in requested) + 1
    statement, values = _build_start(bindings, instance, generation, requested)
    try:
        started = change(session, statement, values)
    except DBDuplicateEntry:
        raise InstanceHasArqs(instance=instance) from None
    if started != len(bindings):
        raise ArqStateConflict(event=Event.BIND, state=State.BIND_STARTED)
    has_alternatives = any(row.has_alternatives for row in requested)
    return add_bind_generation(job, generation, has_alternatives=has_alternatives)


# Any: the columns of _ARQS, here and below.
def _list_bindable(
    session: Session, bindings: Mapping[str, Binding], instance: str, scope: Scope
) -> tuple[list[Any], bool]:
    """Return the ARQs, and whether the instance has others whose bind has failed."""
    parameters = {'uuids': list(bindings), 'instance': instance}
    arq_rows = session.connection().execute(_ARQS, parameters)
    rows = {row.uuid: row for row in arq_rows}
    requested = [rows[uuid] for uuid in bindings if uuid in rows]
    in_scope = {
        row.uuid for row in requested if scope.covers(row.project_id, row.instance_uuid)
    }
    for uuid in bindings:
        if uuid not in in_scope:
            raise ArqNotFound(uuid=uuid)
    if any(row.is_quarantined for row in requested):
        raise DatabaseQuarantined()
    earlier = [row for uuid, row in rows.items() if uuid not in bindings]
    if any(row.state != State.BIND_FAILED for row in earlier):
        raise InstanceHasArqs(instance=instance)
    for row in requested:
        next_state(State(row.state), Event.BIND)
    former_servers.check_former_server(session, instance, requested)
    return requested, bool(earlier)


def _build_start(
    bindings: Mapping[str, Binding],
    instance: str,
    generation: int,
    arqs: Sequence[Any],
) -> tuple[Update, dict[str, Any]]:
    """Return the statement that moves the ARQs to BindStarted, and its parameters."""
    creators = {arq.uuid: arq.project_id for arq in arqs}
    values: dict[str, Any] = {  # column values, and parameters
        'state': State.BIND_STARTED,
        **NO_FAILURE,
        'instance_uuid': instance,
        'generation': generation,
        'uuids': list(bindings),
        GENERATION_PARAMETER: generation,
    }
    columns: dict[str, dict[str, Any]] = {  # by column, then by ARQ
        'instance_slot': {uuid: slot for slot, uuid in enumerate(sorted(bindings))},
        'hostname': {uuid: binding.hostname for uuid, binding in bindings.items()},
        'device_rp_uuid': {
            uuid: binding.device_rp_uuid for uuid, binding in bindings.items()
        },
    }
    if any(binding.project_id is not None for binding in bindings.values()):
        # Only an admin may name a project. Otherwise the ARQ keeps its project.
        columns['project_id'] = {
            uuid: binding.project_id or creators[uuid]
            for uuid, binding in bindings.items()
        }
    statement, common = values_by_row(_START, Arq.uuid, columns)
    return statement, {**values, **common}


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The job after a claim, and the handles to check and to prepare."""

    job: Job
    handles: tuple[AllocatedHandle, ...] = ()  # empty: all ARQs are Bound


def claim_for_bind(
    session: Session,
    job: Job,
    uuids: Sequence[str],
    allocated: Allocated | None,
    bound: NewJob,
) -> ClaimResult:
    """Claim a free handle for each ARQ.

    If no handle needs its host or a check, all ARQs become Bound in this transaction,
    and ``bound`` replaces the job.

    :param allocated: None: Placement is not known, and is not compared
    :raises BindCancelled: an ARQ was unbound, deleted or bound again meanwhile
    :raises NoFreeHandle: a provider is unknown, gone, exhausted or not allocated, or
        does not match its ARQ
    :raises HandlesContended: enough handles exist, but other transactions have locked
        them
    """
    allocated = allocated or Allocated()
    generation = read_bind_generation(job.payload)
    if claim_handles(session, uuids, generation, allocated):
        record_step(session, uuids, CLAIMED, Actor.CONDUCTOR)
        queue.record_job_step(session, job, CLAIMED)
        return ClaimResult(job, list_handles_of_arqs(session, uuids))
    _set_bound(session, job, uuids, allocated.project_id)
    record_step(session, uuids, State.BOUND, Actor.CONDUCTOR)
    return ClaimResult(queue.replace_job(session, job, bound))


def list_claimed_handles(
    session: Session, uuids: Sequence[str], generation: int
) -> tuple[AllocatedHandle, ...]:
    """Return the handles that an earlier attempt of the bind has claimed.

    :raises BindCancelled: an ARQ was unbound, deleted or bound again meanwhile
    """
    parameters = {'uuids': uuids, GENERATION_PARAMETER: generation}
    if len(session.scalars(_BEING_BOUND, parameters).all()) < len(uuids):
        raise BindCancelled()
    return list_handles_of_arqs(session, uuids)


@dataclass(frozen=True, slots=True)
class PreparedBind:
    """The ARQs of a bind, and the handles that agents have confirmed for them."""

    uuids: Sequence[str]
    confirmed: Collection[ConfirmedHandle]


def complete_bind(
    session: Session,
    job: Job,
    prepared: PreparedBind,
    project_id: str | None,
    bound: NewJob,
    *connecting: NewJob,
) -> Job:
    """Move all ARQs to Bound after the hosts have prepared exactly their handles.

    :param connecting: jobs that run beside ``bound``
    :returns: the job ``bound``, which replaces ``job``
    :raises BindCancelled: an ARQ was unbound, deleted or bound again meanwhile
    :raises HandlesNotConfirmed: the confirmed handles are not those of the bind
    """
    uuids = prepared.uuids
    _set_bound(session, job, uuids, project_id)
    _check_confirmed(session, job, prepared)
    record_step(session, uuids, State.BOUND, Actor.AGENT)
    handles = AttachHandle.arq_uuid.in_(uuids)
    change(session, update(AttachHandle).where(handles).values(preparing=False))
    for new in connecting:
        queue.add_job(session, new)
    return queue.replace_job(session, job, bound)


def _check_confirmed(session: Session, job: Job, prepared: PreparedBind) -> None:
    """Check that the confirmed handles are exactly those that hosts must prepare.

    The caller has locked the ARQs.
    """
    generation = read_bind_generation(job.payload)
    claimed = list_handles_of_bind(session, prepared.uuids, generation)
    expected = {handle.confirm() for handle in claimed if handle.needs_host}
    if differing := expected.symmetric_difference(prepared.confirmed):
        arqs = ', '.join(sorted({handle.arq_uuid for handle in differing}))
        raise HandlesNotConfirmed(arqs=arqs)


def fail_bind(
    session: Session, job: Job, uuids: Sequence[str], error: CyborgError, failed: NewJob
) -> Job | None:
    """Move the ARQs to BindFailed and release the handles that the bind has claimed.

    :returns: the job ``failed``, which replaces ``job``; None if no ARQ is being bound
        any more, and the job is finished
    """
    generation = read_bind_generation(job.payload)
    parameters = {'uuids': uuids, GENERATION_PARAMETER: generation}
    session.scalars(_LOCK, {'uuids': uuids}).all()
    failing = session.scalars(_BEING_BOUND, parameters).all()
    _release_claimed(session, job, uuids, generation)
    if not failing:
        queue.finish_job(session, job, error)
        return None
    values: dict[str, Any] = {  # column values, and parameters
        'state': State.BIND_FAILED,
        **describe_failure(error),
    }
    change(session, _END, values | parameters)
    record_step(session, failing, State.BIND_FAILED, Actor.CONDUCTOR, error)
    return queue.replace_job(session, job, failed, error)


def _release_claimed(
    session: Session, job: Job, uuids: Sequence[str], generation: int
) -> None:
    """Release the handles that a bind has claimed. The caller has locked the ARQs."""
    claimed = list_handles_of_bind(session, uuids, generation)
    jobs = [
        queue.release_job(handle.uuid, handle.hostname, job.request_id)
        for handle in claimed
        if handle.needs_host
    ]
    _, instance = name_subject(job.payload)
    release.continue_releases(session, [instance, *uuids], jobs)
    for handle in claimed:
        if handle.host_down:
            # Free and unclean handles of a host that is down are reserved in Placement.
            queue.add_job(session, queue.placement_sync_job(handle.hostname))
    if claimed:
        handles = AttachHandle.uuid.in_([handle.uuid for handle in claimed])
        free = handles, AttachHandle.needs_host.is_(False)
        change(session, update(AttachHandle).where(handles).values(preparing=False))
        change(session, update(AttachHandle).where(*free).values(arq_uuid=None))


def list_arqs_by_outcome(
    session: Session, payload: NovaEventPayload
) -> tuple[str, ...]:
    """Return the ARQs that still have the result of the bind for the instance."""
    state = State.BOUND if payload.succeeded else State.BIND_FAILED
    parameters = {
        'uuids': payload.arq_uuids,
        'instance': payload.instance_uuid,
        'state': state,
        GENERATION_PARAMETER: payload.generation,
    }
    return tuple(session.connection().scalars(_BY_OUTCOME, parameters))


def _set_bound(
    session: Session, job: Job, uuids: Sequence[str], project_id: str | None
) -> None:
    values: dict[str, Any] = {  # column values, and parameters
        'state': State.BOUND,
        **NO_FAILURE,
        'uuids': uuids,
        GENERATION_PARAMETER: read_bind_generation(job.payload),
    }
    if project_id is not None:
        values['project_id'] = project_id
    if change(session, _END_BOUND, values) != len(uuids):
        raise BindCancelled()
