# SPDX-License-Identifier: Apache-2.0
"""Audit of ARQs and handles: list suspects, and repair each one if it is unchanged.

Only ARQs that have not changed since a given time are listed. The SELECTs see
different states of the database, so a result is only a suspicion. Each repair locks the
row of the ARQ and checks it again. Bind, unbind and delete change that row in the
transaction that writes their job. So under the lock all of their changes are visible,
or none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, func, not_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import release
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import Arq, AttachHandle, Job
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.arqs.audit import (
    LEFTOVER_STATES,
    STATES_WITH_HANDLE,
    STATES_WITH_INSTANCE,
    Suspect,
)
from cyborg_lite.model.jobs import BindPayload, JobState, ReleasePayload
from cyborg_lite.model.operations import OperationKind

# Milliseconds. The deadline has passed when a conductor leases the job.
_EXPIRED: Final = -1000


@dataclass(frozen=True, slots=True)
class UnreleasedHandle:
    """A handle whose ARQ does not use it, and that no job will release."""

    suspect: Suspect
    handle_uuid: str
    failed_job: str | None  # uuid of the release job that failed; None: no job


def changed_at() -> ColumnElement[datetime]:
    """Return SQL for the time of the last change of an ARQ."""
    return func.coalesce(Arq.updated_at, Arq.created_at)


_SUSPECT: Final = Record(Suspect, Arq, touched_at=changed_at())


def list_arqs_with_device(
    session: Session, before: datetime, after_id: int, limit: int
) -> tuple[Suspect, ...]:
    """Return a page of the ARQs that have an instance, in the order of creation."""
    conditions = Arq.state.in_(STATES_WITH_INSTANCE), Arq.instance_uuid.is_not(None)
    return _suspects(session, before, after_id, limit, *conditions)


def list_abandoned_arqs(
    session: Session, before: datetime, after_id: int, limit: int
) -> tuple[Suspect, ...]:
    """Return a page of the ARQs without instance and handle, by creation."""
    has_handle = (
        select(AttachHandle.id).where(AttachHandle.arq_uuid == Arq.uuid).exists()
    )
    conditions = (
        Arq.state.in_(LEFTOVER_STATES),
        Arq.instance_uuid.is_(None),
        not_(has_handle),
    )
    return _suspects(session, before, after_id, limit, *conditions)


def list_lost_binds(session: Session, before: datetime) -> tuple[Suspect, ...]:
    """Return the ARQs in state BindStarted that no job is binding."""
    suspects = _suspects(session, before, 0, None, Arq.state == State.BIND_STARTED)
    binding = list_arqs_being_bound(session) if suspects else frozenset()
    return tuple(suspect for suspect in suspects if suspect.uuid not in binding)


def list_unreleased_handles(
    session: Session, before: datetime
) -> tuple[UnreleasedHandle, ...]:
    """Return the handles whose ARQ does not use them and that no job will release."""
    rows = session.execute(
        _SUSPECT.select(AttachHandle.uuid.label('handle'))
        .join(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
        .where(Arq.state.not_in(STATES_WITH_HANDLE), changed_at() < before)
        .order_by(Arq.id)
    ).all()
    if not rows:
        return ()
    binding = list_arqs_being_bound(session)
    releasing = {
        queue.read_payload(ReleasePayload, payload).handle_uuid
        for payload in _list_unfinished_payloads(session, OperationKind.RELEASE)
    }
    failed = _failed_release_jobs(session)
    return tuple(
        UnreleasedHandle(_SUSPECT.read(row), row.handle, failed.get(row.handle))
        for row in rows
        if row.uuid not in binding and row.handle not in releasing
    )


def list_arqs_being_bound(session: Session) -> frozenset[str]:
    """Return the uuids of the ARQs of all bind jobs, of which there are few."""
    return frozenset(
        uuid
        for payload in _list_unfinished_payloads(session, OperationKind.BIND)
        for uuid in queue.read_payload(BindPayload, payload).arq_uuids
    )


def _list_unfinished_payloads(
    session: Session, job_type: OperationKind
) -> list[Mapping[str, Any]]:
    """Return the JSON payloads of all jobs of a type that have not failed."""
    unfinished = select(Job.payload).where(
        Job.kind == job_type, Job.state != JobState.FAILED
    )
    return list(session.scalars(unfinished))


def _failed_release_jobs(session: Session) -> dict[str, str]:
    failed = select(Job.uuid, Job.payload).where(
        Job.kind == OperationKind.RELEASE, Job.state == JobState.FAILED
    )
    return {
        queue.read_payload(ReleasePayload, row.payload).handle_uuid: row.uuid
        for row in session.execute(failed)
    }


def _suspects(
    session: Session,
    before: datetime,
    after_id: int,
    limit: int | None,
    *conditions: ColumnElement[bool],
) -> tuple[Suspect, ...]:
    statement = (
        _SUSPECT.select()
        .where(Arq.id > after_id, changed_at() < before, *conditions)
        .order_by(Arq.id)
        .limit(limit)
    )
    return _SUSPECT.list(session, statement)


# --- repairs ---


def delete_arq(session: Session, suspect: Suspect, request_id: str | None) -> bool:
    """Delete the ARQ; return False if it has changed."""
    if not _lock_unchanged(session, suspect):
        return False
    release.delete_abandoned_arq(session, suspect.uuid, request_id)
    return True


def fail_bind(session: Session, suspect: Suspect, request_id: str | None) -> bool:
    """Have a conductor fail the bind of the whole instance as a bind that timed out.

    :returns: False if the ARQ has changed, or a job binds it
    """
    if not _lock_unchanged(session, suspect):
        return False
    if suspect.uuid in list_arqs_being_bound(session):
        return False
    arqs = select(Arq.uuid, Arq.device_rp_uuid, Arq.generation).where(
        Arq.instance_uuid == suspect.instance_uuid, Arq.state == State.BIND_STARTED
    )
    rows = session.execute(arqs).all()
    payload = BindPayload(
        # An ARQ that is being bound has an instance and a provider.
        instance_uuid=suspect.instance_uuid or '',
        arq_uuids=tuple(sorted(row.uuid for row in rows)),
        provider_uuids=tuple(sorted({row.device_rp_uuid or '' for row in rows})),
        # The same for all ARQs of an instance: one bind has accepted them.
        generation=max((row.generation for row in rows), default=0),
    )
    new = queue.build_job(payload, limit_ms=_EXPIRED, request_id=request_id)
    queue.add_job(session, new)
    return True


def release_handle(
    session: Session, suspect: Suspect, handle: str, request_id: str | None
) -> bool:
    """Have the handle released.

    :param handle: the uuid of the handle
    :returns: False if the ARQ or the handle has changed, or a job works on them
    """
    if not _lock_unchanged(session, suspect):
        return False
    if suspect.uuid in list_arqs_being_bound(session):
        return False
    failed_job = _failed_release_jobs(session).get(handle)
    if failed_job is not None:
        return administration.retry_job(session, failed_job)
    # The job that prepared the handle does not exist any more.
    prepared = update(AttachHandle).where(
        AttachHandle.uuid == handle, AttachHandle.arq_uuid == suspect.uuid
    )
    if not change(session, prepared.values(preparing=False)):
        return False
    release.release_arq(session, suspect.uuid, suspect.state, request_id)
    return True


def _lock_unchanged(session: Session, suspect: Suspect) -> bool:
    """Lock the row of the ARQ; return False if it has changed."""
    unchanged = select(Arq.id).where(
        Arq.uuid == suspect.uuid,
        Arq.state == suspect.state,
        Arq.instance_uuid.is_not_distinct_from(suspect.instance_uuid),
        changed_at() == suspect.touched_at,
    )
    return session.scalar(unchanged.with_for_update()) is not None
