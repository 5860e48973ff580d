# SPDX-License-Identifier: Apache-2.0
"""Programming jobs as shown to clients; they outlive the job itself for a day."""

from datetime import timedelta
from typing import Final

from sqlalchemy import ColumnElement, and_, delete, insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import ProgramJob as Row
from cyborg_lite.db.tables import now
from cyborg_lite.exceptions import JobNotFound
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep

_RETENTION: Final = timedelta(days=1)


def create_program_job(
    session: Session, uuid: str, deployable: str, image: str, project_id: str | None
) -> None:
    """Store a new programming job, and delete those that ended a day ago.

    :param uuid: of the job in the job queue
    :param deployable: the uuid of the deployable
    :param image: the uuid of the image
    """
    has_expired = and_(
        Row.state != ProgramState.RUNNING, Row.updated_at < now() - _RETENTION
    )
    change(session, delete(Row).where(has_expired))
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


def record_program_step(
    session: Session, uuid: str, step: ProgramStep, reason: str = ''
) -> None:
    """Store the step of a running programming job.

    :param reason: why the job waits; empty: the job does not wait
    """
    values = {'step': step, 'reason': reason[:REASON_MAX_LENGTH]}
    change(session, update(Row).where(_is_running(uuid)).values(**values))


def end_program_job(session: Session, uuid: str, failure: str | None) -> None:
    """Store the end of a programming job.

    :param failure: why it failed; None: it succeeded
    """
    if failure is None:
        values = {'state': ProgramState.DONE, 'step': ProgramStep.LOADED, 'reason': ''}
    else:
        reason = failure[:REASON_MAX_LENGTH]
        values = {'state': ProgramState.FAILED, 'reason': reason}
    change(session, update(Row).where(_is_running(uuid)).values(**values))


def _is_running(uuid: str) -> ColumnElement[bool]:
    return and_(Row.uuid == uuid, Row.state == ProgramState.RUNNING)


def find_program_job(session: Session, uuid: str, project_id: str | None) -> ProgramJob:
    """Return a programming job.

    :param project_id: the project that must own the job; None: any project
    :raises JobNotFound: the job does not exist or belongs to another project
    """
    statement = select(Row).where(Row.uuid == uuid)
    if project_id is not None:
        statement = statement.where(Row.project_id == project_id)
    row = session.scalar(statement)
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
