# SPDX-License-Identifier: Apache-2.0
"""ARQ events: the history of an ARQ, written in the transaction of each change.

The creation has no row; its time is that of the ARQ.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import scope_filter
from cyborg_lite.db.change import change
from cyborg_lite.db.clock import now_utc
from cyborg_lite.db.query import convert_rows
from cyborg_lite.db.tables import Arq, ArqEvent
from cyborg_lite.exceptions import ArqNotFound
from cyborg_lite.model.arqs import Actor, Scope, State, Step
from cyborg_lite.model.limits import REASON_MAX_LENGTH

_INSERT: Final = insert(ArqEvent).values(at=now_utc())


def record_step(
    session: Session,
    uuids: Iterable[str],
    step: str,
    actor: Actor,
    reason: str | None = None,
) -> None:
    """Store the same step for all ARQs ``uuids``, in at most one statement."""
    shortened = reason[:REASON_MAX_LENGTH] if reason else None
    values = {'step': step, 'actor': actor, 'reason': shortened}
    rows = [{'arq_uuid': uuid, **values} for uuid in uuids]
    if rows:
        change(session, _INSERT, rows)


def list_steps(session: Session, uuid: str, scope: Scope) -> tuple[Step, ...]:
    """Return the steps of an ARQ in one SELECT, oldest first, with its creation.

    :raises ArqNotFound: the ARQ does not exist or is out of scope
    """
    statement = (
        select(ArqEvent, Arq.created_at)
        .select_from(Arq)
        .outerjoin(ArqEvent, ArqEvent.arq_uuid == Arq.uuid)
        .where(Arq.uuid == uuid, scope_filter(scope))
        .order_by(ArqEvent.id)
    )
    rows = session.execute(statement).all()
    if not rows:
        raise ArqNotFound(uuid=uuid)
    created = Step(step=State.INITIAL, actor=Actor.CLIENT, at=rows[0].created_at)
    # An ARQ without events has one row, whose event is NULL.
    events = [row for row in rows if row[0] is not None]
    return (created, *convert_rows(events, _step))


def _step(row: ArqEvent, _created: datetime) -> Step:
    return Step(step=row.step, actor=Actor(row.actor), at=row.at, reason=row.reason)
