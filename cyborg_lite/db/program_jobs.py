# SPDX-License-Identifier: Apache-2.0
"""What became of programming by hand, for those who ask once the job itself is gone."""

from datetime import timedelta
from typing import Final

from sqlalchemy import and_, delete, insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import ProgramJob as Row
from cyborg_lite.db.tables import now
from cyborg_lite.exceptions import JobNotFound
from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep

_KEPT: Final = timedelta(days=1)
_LONGEST_REASON: Final = 255


def add(
    session: Session, uuid: str, deployable: str, image: str, project_id: str | None
) -> None:
    """With the job of that uuid. Those that ended long ago go."""
    ended = and_(Row.state != ProgramState.RUNNING, Row.updated_at < now() - _KEPT)
    change(session, delete(Row).where(ended))
    session.execute(
        insert(Row).values(
            uuid=uuid,
            deployable_uuid=deployable,
            image_uuid=image,
            project_id=project_id,
            state=ProgramState.RUNNING,
            step=ProgramStep.ACCEPTED,
            reason='',
        )
    )


def reach(session: Session, uuid: str, step: ProgramStep, reason: str = '') -> None:
    """:param reason: why it does not go on at the moment"""
    kept = reason[:_LONGEST_REASON]
    going = and_(Row.uuid == uuid, Row.state == ProgramState.RUNNING)
    change(session, update(Row).where(going).values(step=step, reason=kept))


def end(session: Session, uuid: str, failure: str | None) -> None:
    """:param failure: None: it is loaded"""
    if failure is None:
        values = {'state': ProgramState.DONE, 'step': ProgramStep.LOADED, 'reason': ''}
    else:
        reason = failure[:_LONGEST_REASON]
        values = {'state': ProgramState.FAILED, 'reason': reason}
    going = and_(Row.uuid == uuid, Row.state == ProgramState.RUNNING)
    change(session, update(Row).where(going).values(**values))


def shown(session: Session, uuid: str, project_id: str | None) -> ProgramJob:
    """:param project_id: whose it must be; None: anybody's
    :raises JobNotFound: there is none, or it is another project's
    """
    wanted = select(Row).where(Row.uuid == uuid)
    if project_id is not None:
        wanted = wanted.where(Row.project_id == project_id)
    row = session.scalar(wanted)
    if row is None:
        raise JobNotFound(uuid=uuid)
    return ProgramJob(
        uuid=row.uuid,
        deployable_uuid=row.deployable_uuid,
        image_uuid=row.image_uuid,
        state=ProgramState(row.state),
        step=ProgramStep(row.step),
        reason=row.reason,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
