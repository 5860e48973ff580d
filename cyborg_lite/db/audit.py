# SPDX-License-Identifier: Apache-2.0
"""Requests and handles that look forgotten; see ``orphans.py`` for what is done.

Only what nobody has touched since a moment is looked at. The reads here see different
moments, and so a finding is a suspicion: whoever acts upon it looks again, with the row
of the request locked.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, not_, select
from sqlalchemy.orm import Session

from cyborg_lite.db.tables import Arq, AttachHandle, Job
from cyborg_lite.model.arqs import State
from cyborg_lite.model.audit import LEFT_OVER, MAY_HOLD, WITH_DEVICE, Suspect
from cyborg_lite.model.jobs import JobState, Kind


def touched_at() -> ColumnElement[datetime]:
    """When the request changed last."""
    return func.coalesce(Arq.updated_at, Arq.created_at)


def with_device(
    session: Session, before: datetime, after_id: int, limit: int
) -> tuple[Suspect, ...]:
    """A page of the requests that belong to servers, by their age."""
    wanted = Arq.state.in_(WITH_DEVICE), Arq.instance_uuid.is_not(None)
    return _suspects(session, before, after_id, limit, *wanted)


def left_over(
    session: Session, before: datetime, after_id: int, limit: int
) -> tuple[Suspect, ...]:
    """A page of those that nobody ever bound, or bound again, and hold nothing."""
    holds = select(AttachHandle.id).where(AttachHandle.arq_uuid == Arq.uuid).exists()
    wanted = Arq.state.in_(LEFT_OVER), Arq.instance_uuid.is_(None), not_(holds)
    return _suspects(session, before, after_id, limit, *wanted)


def lost_binds(session: Session, before: datetime) -> tuple[Suspect, ...]:
    """Requests that are being bound, and no job is there that would do it."""
    found = _suspects(session, before, 0, None, Arq.state == State.BIND_STARTED)
    bound = being_bound(session) if found else frozenset()
    return tuple(suspect for suspect in found if suspect.uuid not in bound)


@dataclass(frozen=True, slots=True)
class Held:
    """A handle that is kept for a request that has no use for it."""

    suspect: Suspect
    handle_uuid: str
    failed_job: str | None  # uuid of a release that was given up


def held_in_vain(session: Session, before: datetime) -> tuple[Held, ...]:
    """Those that no job will release."""
    rows = session.execute(
        select(Arq, touched_at(), AttachHandle.uuid)
        .join(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
        .where(Arq.state.not_in(MAY_HOLD), touched_at() < before)
        .order_by(Arq.id)
    ).all()
    if not rows:
        return ()
    bound, released = being_bound(session), _mentioned(session, Kind.RELEASE, 'handle')
    failed = _failed_releases(session)
    return tuple(
        Held(_suspect(arq, touched), handle, failed.get(handle))
        for arq, touched, handle in rows
        if arq.uuid not in bound and handle not in released
    )


def being_bound(session: Session) -> frozenset[str]:
    """The requests of all bind jobs. There are few at any time."""
    return _mentioned(session, Kind.BIND, 'arqs')


def _mentioned(session: Session, kind: Kind, field: str) -> frozenset[str]:
    unfinished = select(Job.payload).where(
        Job.kind == kind, Job.state != JobState.FAILED
    )
    named: set[str] = set()
    for payload in session.scalars(unfinished):
        said: str | Iterable[str] = payload.get(field, ())
        named.update([said] if isinstance(said, str) else said)
    return frozenset(named)


def _failed_releases(session: Session) -> dict[str, str]:
    """The jobs that were given up, by the handle that is not clean."""
    failed = select(Job.uuid, Job.payload).where(
        Job.kind == Kind.RELEASE, Job.state == JobState.FAILED
    )
    return {row.payload['handle']: row.uuid for row in session.execute(failed)}


def _suspects(
    session: Session,
    before: datetime,
    after_id: int,
    limit: int | None,
    *which: ColumnElement[bool],
) -> tuple[Suspect, ...]:
    rows: Sequence[Any] = session.execute(
        select(Arq, touched_at())
        .where(Arq.id > after_id, touched_at() < before, *which)
        .order_by(Arq.id)
        .limit(limit)
    ).all()
    return tuple(_suspect(arq, touched) for arq, touched in rows)


def _suspect(arq: Arq, touched: datetime) -> Suspect:
    return Suspect(
        id=arq.id,
        uuid=arq.uuid,
        state=State(arq.state),
        touched_at=touched,
        instance_uuid=arq.instance_uuid,
        hostname=arq.hostname,
        device_rp_uuid=arq.device_rp_uuid,
    )
