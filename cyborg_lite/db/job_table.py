# SPDX-License-Identifier: Apache-2.0
"""The job table in the hands of an operator: look, try again, cancel.

Nothing here ends a job. What is cancelled is wound up by a conductor, which knows what
each kind holds and must give back.
"""

from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import case, delete, func, literal, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.clock import now_ms
from cyborg_lite.db.jobs import CANCELLED
from cyborg_lite.db.tables import Job as Row
from cyborg_lite.exceptions import JobNotFound, JobRefused
from cyborg_lite.model.jobs import JobRecord, JobState, Kind

# Whoever gave up a job took its key, so that another could be written. What the key
# was the payload tells.
_KEYS: Final[Mapping[str, str]] = {Kind.RELEASE: 'handle', Kind.PLACEMENT_SYNC: 'host'}


def listed(
    session: Session, kinds: Collection[str] = (), states: Collection[str] = ()
) -> tuple[JobRecord, ...]:
    """Those of any of the kinds and states, oldest first; none given means all."""
    wanted = select(Row, now_ms()).order_by(Row.id)
    if kinds:
        wanted = wanted.where(Row.kind.in_(kinds))
    if states:
        wanted = wanted.where(Row.state.in_(states))
    return tuple(_record(row, moment) for row, moment in session.execute(wanted))


def _record(row: Row, moment: int) -> JobRecord:
    cancelled = row.deadline == CANCELLED
    limited = row.deadline is not None and not cancelled
    return JobRecord(
        uuid=row.uuid,
        kind=row.kind,
        state=JobState(row.state),
        key=row.key,
        payload=row.payload,
        attempts=row.attempts,
        step=row.step,
        age=(moment - row.created_at) / 1000,
        due_in=(row.run_after - moment) / 1000,
        deadline_in=((row.deadline or 0) - moment) / 1000 if limited else None,
        cancelled=cancelled,
        owner=row.owner,
        last_error=row.last_error,
        request_id=row.request_id,
    )


def longest_waits(session: Session) -> dict[str, float]:
    """For how many seconds the oldest that is due has waited, by kind."""
    waiting = Row.state == JobState.WAITING, Row.run_after <= now_ms()
    oldest = select(Row.kind, now_ms() - func.min(Row.run_after)).where(*waiting)
    return {
        kind: float(waited) / 1000
        for kind, waited in session.execute(oldest.group_by(Row.kind))
    }


def retry(session: Session, uuid: str) -> bool:
    """Have it run now. False: another that was written since does the same already.

    A failed one gets all the time again that it had.

    :raises JobNotFound: there is none
    :raises JobRefused: it runs at this moment, or was cancelled
    """
    row = _locked(session, uuid)
    mine = Row.uuid == uuid
    if row.state == JobState.RUNNING:
        raise JobRefused(job=uuid, reason=f'{row.owner} works on it now.')
    if row.state == JobState.WAITING:
        if row.deadline == CANCELLED:
            raise JobRefused(job=uuid, reason='it is cancelled, to be wound up.')
        change(session, update(Row).where(mine).values(run_after=now_ms()))
        return True
    key = row.payload.get(_KEYS.get(row.kind, ''))
    taken = select(Row.id).where(Row.kind == row.kind, Row.key == key)
    if key is not None and session.scalar(taken) is not None:
        change(session, delete(Row).where(mine))
        return False
    values = {
        'state': JobState.WAITING,
        'key': key,
        'attempts': 0,
        'run_after': now_ms(),
        'deadline': _as_long_again(row.deadline, row.created_at),
        'created_at': now_ms(),
    }
    change(session, update(Row).where(mine).values(**values))
    return True


def _as_long_again(deadline: int | None, created_at: int) -> object:
    # A column value. What was cancelled may take as long as it takes.
    if deadline is None or deadline == CANCELLED:
        return None
    return now_ms() + (deadline - created_at)


def cancel(session: Session, uuid: str) -> None:
    """Let a conductor wind it up as if its time had run out, at once if it waits.

    One that runs is wound up unless it succeeds. A failed one that holds no device is
    forgotten.

    :raises JobNotFound: there is none
    :raises JobRefused: it is all that remembers that a device is not clean
    """
    row = _locked(session, uuid)
    mine = Row.uuid == uuid
    if row.state != JobState.FAILED:
        due = case((Row.state == JobState.WAITING, now_ms()), else_=Row.run_after)
        cancelled = {'deadline': literal(CANCELLED), 'run_after': due}
        change(session, update(Row).where(mine).values(**cancelled))
        return
    if row.kind == Kind.RELEASE:
        reason = 'it has failed already, and its device is not clean. Retry it.'
        raise JobRefused(job=uuid, reason=reason)
    change(session, delete(Row).where(mine))


def _locked(session: Session, uuid: str) -> Row:
    """:raises JobNotFound: there is none"""
    row = session.scalar(select(Row).where(Row.uuid == uuid).with_for_update())
    if row is None:
        raise JobNotFound(uuid=uuid)
    return row
