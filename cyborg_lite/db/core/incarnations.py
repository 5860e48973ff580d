# SPDX-License-Identifier: Apache-2.0
"""The incarnation of the database, its mark, and its quarantine after a restore."""

from typing import Final

from sqlalchemy import bindparam, exists, func, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.tables import ArqEvent, UsagePeriod
from cyborg_lite.db.core.tables import Incarnation as Row
from cyborg_lite.errors.daemons import DatabaseQuarantined
from cyborg_lite.model.hosts.incarnations import (
    NO_MARK,
    DatabaseMark,
    DatabaseState,
    Quarantine,
)
from cyborg_lite.model.limits import REASON_MAX_LENGTH

_IS_QUARANTINE: Final = Row.began_at.is_(None)

IS_QUARANTINED: Final = exists().where(_IS_QUARANTINE)
"""SQL that is true while the database is in quarantine."""

INCARNATION: Final = (
    select(func.coalesce(func.max(Row.id), 0))
    .where(~_IS_QUARANTINE)
    .scalar_subquery()
    .label('incarnation')
)
"""SQL for the incarnation of the database."""

_LATEST: Final = select(ArqEvent.id, ArqEvent.arq_uuid).order_by(ArqEvent.id.desc())
# One statement, because a step between two would be the latest of neither.
_READ: Final = (
    select(
        INCARNATION,
        _LATEST.with_only_columns(ArqEvent.id).limit(1).scalar_subquery(),
        _LATEST.with_only_columns(ArqEvent.arq_uuid).limit(1).scalar_subquery(),
        select(func.max(UsagePeriod.id)).scalar_subquery(),
        select(ArqEvent.arq_uuid)
        .where(ArqEvent.id == bindparam('step'))
        .scalar_subquery(),
    ),
    select(Row).where(_IS_QUARANTINE).order_by(Row.id.desc()).limit(1),
)
# Another conductor may begin the quarantine at the same time.
_BEGIN: Final = Upsert(
    Row, [Row.id], ['reason'], computed={'quarantined_at': now_utc()}
)


def read_state(session: Session, remembered: DatabaseMark = NO_MARK) -> DatabaseState:
    """Return the mark of the database and its quarantine, in two SELECTs.

    :param remembered: the mark with which the state is compared
    """
    parameters = {'step': remembered.step}
    incarnation, *latest, arq = session.execute(_READ[0], parameters).one()
    step, arq_uuid, period = latest
    mark = DatabaseMark(incarnation, step or 0, arq_uuid or '', period or 0)
    return DatabaseState(mark, find_quarantine(session), arq)


def find_quarantine(session: Session) -> Quarantine | None:
    """Return the quarantine of the database; None: it is trusted."""
    row = session.scalars(_READ[1]).one_or_none()
    return None if row is None else Quarantine(row.id, row.quarantined_at, row.reason)


def check_trusted(session: Session) -> None:
    """Check that the database is not in quarantine.

    :raises DatabaseQuarantined: it is
    """
    if find_quarantine(session) is not None:
        raise DatabaseQuarantined()


def begin_quarantine(session: Session, remembered: DatabaseMark, reason: str) -> None:
    """Begin the quarantine of a database that has lost commits.

    The next incarnation is above all that are stored or remembered. A quarantine that
    has begun stays, or gets a higher number.

    :param remembered: a mark that the database lacks
    :param reason: for the operator
    """
    newest = session.scalar(select(func.max(Row.id))) or 0
    quarantine = find_quarantine(session)
    if quarantine is not None and quarantine.incarnation > remembered.incarnation:
        return
    number = 1 + max(newest, remembered.incarnation)
    if quarantine is None:
        values = {'id': number, 'reason': reason[:REASON_MAX_LENGTH]}
        _BEGIN.run(session, {**values, 'began_at': None})
    else:
        change(session, update(Row).where(_IS_QUARANTINE).values(id=number))


def end_quarantine(session: Session) -> int | None:
    """End the quarantine: a new incarnation of the database begins.

    The caller has compared the database with the hosts, with Placement and with Nova,
    in this or an earlier transaction. Conductors and agents read the incarnation within
    seconds. Then binds are accepted, and the jobs that wait go on::

        number = database.write(incarnations.end_quarantine)

    :returns: the number of the incarnation; None: the database is not in quarantine
    """
    quarantine = find_quarantine(session)
    if quarantine is None:
        return None
    began = update(Row).where(_IS_QUARANTINE).values(began_at=now_utc())
    change(session, began)
    return quarantine.incarnation
