# SPDX-License-Identifier: Apache-2.0
"""The transactions that end what an audit found; each looks once more before.

The row of the request is locked first. Whoever binds, unbinds or deletes changes that
row in the transaction that writes its job, so that from then on either nothing of
theirs is there, or all of it is seen.
"""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import job_table, jobs, release
from cyborg_lite.db.audit import being_bound, touched_at
from cyborg_lite.db.change import change
from cyborg_lite.db.tables import Arq, AttachHandle, Job
from cyborg_lite.model.arqs import State
from cyborg_lite.model.audit import Suspect
from cyborg_lite.model.jobs import JobState, Kind, NewJob

_LONG_PAST: int = -1000  # milliseconds: a deadline that is over when the job is taken


def delete(session: Session, suspect: Suspect, request_id: str | None) -> bool:
    """Delete the request. False: it is not what it was, and is left alone."""
    if not _unchanged(session, suspect):
        return False
    release.reap(session, suspect.uuid, request_id)
    return True


def end_bind(session: Session, suspect: Suspect, request_id: str | None) -> bool:
    """Have a conductor fail the bind of the whole instance, as one whose time is up.

    False: somebody works on it.
    """
    if not _unchanged(session, suspect) or suspect.uuid in being_bound(session):
        return False
    together = select(Arq.uuid, Arq.device_rp_uuid).where(
        Arq.instance_uuid == suspect.instance_uuid, Arq.state == State.BIND_STARTED
    )
    rows = session.execute(together).all()
    payload = {
        'instance': suspect.instance_uuid,
        'arqs': sorted(row.uuid for row in rows),
        'providers': sorted({row.device_rp_uuid for row in rows}),
        'project': None,
    }
    limit = _LONG_PAST
    jobs.add(session, NewJob(Kind.BIND, payload, limit_ms=limit, request_id=request_id))
    return True


def clean(
    session: Session, suspect: Suspect, handle: str, request_id: str | None
) -> bool:
    """Have the handle released. False: somebody does so already."""
    if not _unchanged(session, suspect) or suspect.uuid in being_bound(session):
        return False
    mine = AttachHandle.uuid == handle, AttachHandle.arq_uuid == suspect.uuid
    failed = _failed_release(session, handle)
    if failed is not None:
        return job_table.retry(session, failed)
    # Whoever prepared it is gone without a trace.
    if not change(session, update(AttachHandle).where(*mine).values(preparing=False)):
        return False
    release.let_go(session, suspect.uuid, suspect.state, request_id)
    return True


def _failed_release(session: Session, handle: str) -> str | None:
    """The uuid of the job."""
    failed = select(Job.uuid, Job.payload).where(
        Job.kind == Kind.RELEASE, Job.state == JobState.FAILED
    )
    for row in session.execute(failed):
        if row.payload['handle'] == handle:
            return str(row.uuid)
    return None


def _unchanged(session: Session, suspect: Suspect) -> bool:
    """Locks the row."""
    same = select(Arq.id).where(
        Arq.uuid == suspect.uuid,
        Arq.state == suspect.state,
        Arq.instance_uuid.is_not_distinct_from(suspect.instance_uuid),
        touched_at() == suspect.touched_at,
    )
    return session.scalar(same.with_for_update()) is not None
