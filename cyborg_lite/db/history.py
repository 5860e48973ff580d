# SPDX-License-Identifier: Apache-2.0
"""What became of each request, step by step, written with the change itself.

Its creation is no row: the request itself tells when it was.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import within
from cyborg_lite.db.change import change
from cyborg_lite.db.reading import readable
from cyborg_lite.db.tables import Arq, ArqEvent, now
from cyborg_lite.exceptions import ArqNotFound
from cyborg_lite.model.arqs import Actor, Scope, State, Step

_LONGEST_REASON: Final = 255
_RECORD: Final = insert(ArqEvent)


def record(
    session: Session,
    uuids: Iterable[str],
    step: str,
    actor: Actor,
    reason: str | None = None,
) -> None:
    """One statement for all of ``uuids``, none for none."""
    shortened = reason[:_LONGEST_REASON] if reason else None
    what = {'step': step, 'actor': actor, 'reason': shortened, 'at': now()}
    rows = [{'arq_uuid': uuid, **what} for uuid in uuids]
    if rows:
        change(session, _RECORD, rows)


def steps(session: Session, uuid: str, scope: Scope) -> tuple[Step, ...]:
    """Those of one request, oldest first, in one SELECT. The first made it.

    :raises ArqNotFound: no such request within the scope
    """
    wanted = (
        select(ArqEvent, Arq.created_at)
        .select_from(Arq)
        .outerjoin(ArqEvent, ArqEvent.arq_uuid == Arq.uuid)
        .where(Arq.uuid == uuid, within(scope))
        .order_by(ArqEvent.id)
    )
    rows = session.execute(wanted).all()
    if not rows:
        raise ArqNotFound(uuid=uuid)
    made = Step(step=State.INITIAL, actor=Actor.CLIENT, at=rows[0].created_at)
    # Without history the request has one row, which is no step.
    taken = [row for row in rows if row[0] is not None]
    return (made, *readable(taken, _step))


def _step(row: ArqEvent, _created: datetime) -> Step:
    return Step(step=row.step, actor=Actor(row.actor), at=row.at, reason=row.reason)
