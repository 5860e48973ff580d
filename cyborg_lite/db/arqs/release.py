# SPDX-License-Identifier: Apache-2.0
"""Transactions that release handles: unbind, delete, and the end of a release.

A handle that its host need not clean is free when the transaction commits. Any other
handle keeps its ARQ until the host has cleaned it, so that no other ARQ can claim it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Select, and_, bindparam, delete, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import usages
from cyborg_lite.db.arqs.attach_handles import list_handles_of_arqs
from cyborg_lite.db.arqs.history import (
    NO_FAILURE,
    RELEASE_FAILED,
    RELEASED,
    describe_failure,
    record_step,
)
from cyborg_lite.db.bitstreams import loaded_regions, programming
from cyborg_lite.db.bitstreams.programming import StoredRegion
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.tables import Arq, AttachHandle
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import operations, outbox, queue
from cyborg_lite.db.profiles import former_servers
from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.requests import ServiceTokenRequired
from cyborg_lite.model.arqs.arqs import (
    Actor,
    Event,
    Scope,
    State,
    next_state,
    states_that_allow,
)
from cyborg_lite.model.devices.cleaning import (
    CleanState,
    state_after_use,
)
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.notifications import DELETED
from cyborg_lite.model.operations import NewOperation, OperationKind, SubjectType

_FOR_RELEASE: Final = (
    select(
        Arq.uuid,
        Arq.state,
        Arq.project_id,
        Arq.instance_uuid,
        Arq.device_profile_id,
    )
    .order_by(Arq.id)
    # Locked: a bind that ends at the same time must wait, and then sees that the ARQs
    # have left BindStarted. The fixed order prevents deadlocks.
    .with_for_update()
)
_BY_UUID: Final = _FOR_RELEASE.where(Arq.uuid.in_(bindparam('uuids')))
_BY_INSTANCE: Final = _FOR_RELEASE.where(Arq.instance_uuid == bindparam('instance'))
_FREE: Final = (
    update(AttachHandle)
    .where(
        AttachHandle.uuid.in_(bindparam('uuids')),
        # Other ARQs may have claimed the handles since they were read.
        AttachHandle.arq_uuid.in_(bindparam('owners')),
    )
    .values(arq_uuid=None, preparing=False, clean_state=bindparam('state'))
)
_NO_INSTANCE: Final = {'instance_uuid': None, 'instance_slot': None, 'bound_at': None}
_DELETE: Final = delete(Arq).where(Arq.uuid.in_(bindparam('uuids')))


def unbind_arqs(
    session: Session,
    uuids: Sequence[str],
    scope: Scope,
    operation: NewOperation | None = None,
) -> None:
    """Release the handles of ARQs; the ARQs can be bound again.

    :param operation: that ends when the hosts have cleaned the handles
    :raises ArqNotFound: an ARQ is unknown or out of scope; nothing is changed
    :raises ArqStateConflict: an ARQ is being deleted
    """
    rows = _lock_arqs(session, _BY_UUID, {'uuids': uuids}, scope)
    for uuid in uuids:
        if uuid not in {row.uuid for row in rows}:
            raise ArqNotFound(uuid=uuid)
    states = {row.uuid: next_state(State(row.state), Event.UNBIND) for row in rows}
    operation = _name_subject(operation, rows)
    unclean = _release_handles(session, uuids, _request_of(operation), operation)
    if operation is not None and not unclean:
        operations.add(session, operation)
    # ARQs that were never bound keep their state. So do ARQs whose release has failed:
    # the release is tried again.
    unbound = [uuid for uuid, state in states.items() if state is State.UNBOUND]
    if unbound:
        change(
            session,
            update(Arq)
            .where(Arq.uuid.in_(unbound))
            .values(
                state=State.UNBOUND,
                **NO_FAILURE,
                **_NO_INSTANCE,
                hostname=None,
                device_rp_uuid=None,
                updated_at=now_utc(),
            ),
        )
        record_step(session, unbound, State.UNBOUND, Actor.CLIENT)
    if operation is not None and not unclean:
        operations.end_job(session, [operation.uuid])


def delete_arqs(
    session: Session,
    uuids: Sequence[str],
    scope: Scope,
    of_service: bool,
    operation: NewOperation | None = None,
) -> tuple[str, ...]:
    """Delete the ARQs that exist and return the uuids of all others.

    The others include ARQs that another call is already deleting, so that only one of
    two concurrent calls succeeds. Their release is tried again.

    :param of_service: the caller has a service token
    :param operation: written if hosts must clean handles
    :raises ServiceTokenRequired: an ARQ has an instance and the caller is no service
    """
    rows = _lock_arqs(session, _BY_UUID, {'uuids': uuids}, scope)
    if not of_service and any(row.instance_uuid is not None for row in rows):
        raise ServiceTokenRequired(action='Deleting a bound accelerator request')
    _delete_by_client(session, rows, operation)
    deleted = {row.uuid for row in rows if row.state != State.DELETING}
    return tuple(sorted(set(uuids) - deleted))


def delete_arqs_of_instance(
    session: Session,
    instance: str,
    scope: Scope,
    operation: NewOperation | None = None,
) -> bool:
    """Delete all ARQs of an instance, if it has any.

    :param operation: written if hosts must clean handles
    :returns: True if a host must clean handles; a job does this
    """
    rows = _lock_arqs(session, _BY_INSTANCE, {'instance': instance}, scope)
    former_servers.record_former_server(session, instance, rows)
    return _delete_by_client(session, rows, operation)


def _delete_by_client(
    session: Session, rows: Sequence[Any], operation: NewOperation | None
) -> bool:
    uuids, request_id = [row.uuid for row in rows], _request_of(operation)
    operation = _name_subject(operation, rows)
    return _delete(session, uuids, request_id, operation=operation)


def _request_of(operation: NewOperation | None) -> str | None:
    return None if operation is None else operation.request_id


def _name_subject(
    operation: NewOperation | None, rows: Sequence[Any]
) -> NewOperation | None:
    """Return the operation with its subject: the instance, or the first ARQ."""
    if operation is None:
        return None
    uuids = [row.uuid for row in rows]
    subject_type, subject_id = SubjectType.ARQ, next(iter(uuids), '')
    instances = {row.instance_uuid for row in rows}
    if len(instances) == 1 and None not in instances:
        subject_type, subject_id = SubjectType.INSTANCE, instances.pop()
    return replace(
        operation,
        subject_type=subject_type,
        subject_id=subject_id,
        parameters={'arqs': uuids},
    )


def delete_failed_arqs(
    session: Session, instance: str, surviving: Collection[str], request_id: str | None
) -> None:
    """Delete the ARQs of an instance whose bind has failed.

    :param surviving: uuids of ARQs that stay
    """
    statement = _BY_INSTANCE.where(
        Arq.state == State.BIND_FAILED, Arq.uuid.not_in(surviving)
    )
    rows = session.connection().execute(statement, {'instance': instance})
    _delete(session, [row.uuid for row in rows], request_id)


def delete_abandoned_arq(session: Session, uuid: str, request_id: str | None) -> None:
    """Delete an ARQ that its creator has not deleted. The caller has locked its row."""
    _delete(session, [uuid], request_id, Actor.CONDUCTOR)


def release_arq(
    session: Session, uuid: str, state: State, request_id: str | None
) -> None:
    """Release the handle of an unused ARQ, whose row the caller has locked.

    An ARQ in state Deleting is deleted.
    """
    if state is State.DELETING:
        delete_abandoned_arq(session, uuid, request_id)
    else:
        _release_handles(session, [uuid], request_id)


def _lock_arqs(
    session: Session,
    statement: Select[*tuple[Any, ...]],
    values: Mapping[str, Any],  # the parameters of the statement, of any type
    scope: Scope,
) -> Sequence[Any]:
    rows = session.connection().execute(statement, values)
    return [row for row in rows if scope.covers(row.project_id, row.instance_uuid)]


def _delete(
    session: Session,
    uuids: Sequence[str],
    request_id: str | None,
    actor: Actor = Actor.CLIENT,
    operation: NewOperation | None = None,
) -> bool:
    """Delete ARQs; return True if hosts must clean their handles."""
    if not uuids:
        return False
    handles = _release_handles(session, uuids, request_id, operation)
    deleting = {handle.arq_uuid for handle in handles}
    deleted = [uuid for uuid in uuids if uuid not in deleting]
    if deleted:
        outbox.add_arqs(session, Arq.uuid.in_(deleted), DELETED)
        change(session, _DELETE, {'uuids': deleted})
    if deleting:
        # The ARQ leaves its instance at once: an instance that is evacuated gets new
        # ARQs while the host of the old ones is still down.
        change(
            session,
            update(Arq)
            .where(Arq.uuid.in_(deleting))
            .values(state=State.DELETING, **_NO_INSTANCE, updated_at=now_utc()),
        )
        record_step(session, deleting, State.DELETING, actor)
    return bool(deleting)


def _release_handles(
    session: Session,
    uuids: Sequence[str],
    request_id: str | None,
    operation: NewOperation | None = None,
) -> list[AllocatedHandle]:
    """Free the handles of ARQs and return those that their hosts must clean first."""
    usages.end_periods(session, uuids)
    handles = list_handles_of_arqs(session, uuids)
    _free(session, [handle for handle in handles if not handle.needs_host])
    unclean = [handle for handle in handles if handle.needs_host]
    for handle in unclean:
        # If a bind is still preparing the handle, the bind job writes the release job.
        if not handle.preparing:
            job = queue.release_job(handle.uuid, handle.hostname, request_id)
            queue.add_job(session, replace(job, operation=operation))
    if operation is not None and any(handle.preparing for handle in unclean):
        operations.add(session, operation)  # until `continue_releases`
    return unclean


def continue_releases(
    session: Session, subjects: Sequence[str], jobs: Sequence[NewJob]
) -> None:
    """Add the release jobs of a bind that has ended, for the operations that wait.

    :param subjects: the instance and the ARQs of the bind
    """
    waiting = operations.list_unfinished(
        session, OperationKind.RELEASE, subjects, jobless=True
    )
    owners: list[NewOperation | None] = [
        NewOperation(OperationKind.RELEASE, uuid=uuid) for uuid in waiting
    ]
    for job in jobs:
        for operation in owners or [None]:
            queue.add_job(session, replace(job, operation=operation))
    operations.end_job(session, waiting)


def _free(session: Session, handles: Sequence[AllocatedHandle]) -> None:
    by_state: dict[CleanState, list[AllocatedHandle]] = defaultdict(list)
    for handle in handles:
        by_state[state_after_use(handle.cleaning)].append(handle)
    for state, members in by_state.items():
        freed = {
            'uuids': [handle.uuid for handle in members],
            'owners': [handle.arq_uuid for handle in members],
            'state': state,
        }
        change(session, _FREE, freed)
    for handle in by_state[CleanState.DIRTY]:
        job = queue.clean_job(handle.uuid, handle.hostname)
        queue.add_job(session, job)
    for hostname in {handle.hostname for handle in handles if handle.missing}:
        reports.delete_missing_handles(session, hostname)
    # Unclean units, and free handles of a host that is down, are reserved in Placement.
    # A free unit of an elastic card makes room for other sizes.
    usable = [
        handle
        for handle in by_state[CleanState.CLEAN]
        if not handle.host_down and handle.place is None
    ]
    queue.sync_hosts(session, {item.hostname for item in handles if item not in usable})


def record_restore(
    session: Session, handle: AllocatedHandle, region: StoredRegion, trouble: str
) -> bool:
    """Store how the load of the bitstream from before a bind has ended.

    :param trouble: why the load failed, so that the region is unusable; empty: success
    :returns: False if the handle was released meanwhile: nothing is stored, because the
        region may have another user
    """
    if _lock_owner(session, handle) is None:
        return False
    if trouble:
        programming.mark_region_unusable(session, region, trouble)
    loaded_regions.clear_previous_load(session, region.deployable_id)
    return True


def record_release(session: Session, job: Job, handle: AllocatedHandle) -> None:
    """Free a handle that its host has cleaned, and delete an ARQ in state Deleting.

    :raises JobLost: another conductor took over the job
    """
    if _lock_owner(session, handle) is not None:
        _free(session, [handle])
        owner = Arq.uuid == handle.arq_uuid
        is_deleted = and_(owner, Arq.state == State.DELETING)
        outbox.add_arqs(session, is_deleted, DELETED)
        if not change(session, delete(Arq).where(is_deleted)):
            failed = and_(owner, Arq.state == State.UNBIND_FAILED)
            unbound = {'state': State.UNBOUND, **NO_FAILURE, 'updated_at': now_utc()}
            change(session, update(Arq).where(failed).values(**unbound))
            record_step(session, [handle.arq_uuid], RELEASED, Actor.AGENT)
    # Any sync of the host that ran during the release has reserved the handle.
    queue.add_job(session, queue.placement_sync_job(handle.hostname, job.request_id))
    queue.finish_job(session, job)


def _lock_owner(session: Session, handle: AllocatedHandle) -> State | None:
    """Lock the ARQ that owns a handle, and return its state.

    The ARQ is locked before the handle, as by a bind and a delete.

    :returns: None if the handle was released since it was read. Another ARQ, or a
        later bind of the same one, may have claimed it.
    """
    owner = select(Arq.state).where(Arq.uuid == handle.arq_uuid).with_for_update()
    state = session.scalar(owner)
    unchanged = session.scalar(
        select(AttachHandle.id).where(
            AttachHandle.uuid == handle.uuid,
            AttachHandle.arq_uuid == handle.arq_uuid,
            AttachHandle.generation == handle.generation,
        )
    )
    return None if state is None or unchanged is None else State(state)


def record_release_failure(
    session: Session, handle: AllocatedHandle, error: CyborgError
) -> None:
    """Store that a host could not release a handle, and reserve it in Placement.

    If the handle was released meanwhile, nothing is stored.
    """
    state = _lock_owner(session, handle)
    if state is None:
        return
    queue.add_job(session, queue.placement_sync_job(handle.hostname))
    if state not in states_that_allow(Event.RELEASE_FAILED):
        return
    following = next_state(state, Event.RELEASE_FAILED)
    values = {'state': following, **describe_failure(error)}
    owner = Arq.uuid == handle.arq_uuid
    change(session, update(Arq).where(owner).values(**values, updated_at=now_utc()))
    record_step(session, [handle.arq_uuid], RELEASE_FAILED, Actor.AGENT, error)
