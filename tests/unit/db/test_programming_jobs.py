# SPDX-License-Identifier: Apache-2.0
"""Jobs of the program API call: progress, result, visibility and expiry."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ProgramJob as Row
from cyborg_lite.db.core.tables import now
from cyborg_lite.errors.jobs import JobNotFound
from cyborg_lite.model.bitstreams.program_jobs import (
    ProgramJob,
    ProgramState,
    ProgramStep,
)
from tests.builders.rows import PROJECT


def add_program_job(database: Database) -> str:
    uuid = str(uuid4())
    database.write(
        programming.create_program_job, uuid, str(uuid4()), str(uuid4()), PROJECT
    )
    return uuid


def read_program_job(database: Database, uuid: str) -> ProgramJob:
    return database.read(programming.find_program_job, uuid, None)


def test_program_job_records_steps_until_done(database: Database) -> None:
    uuid = add_program_job(database)
    first = read_program_job(database, uuid)
    assert (first.state, first.step) == (ProgramState.RUNNING, ProgramStep.ACCEPTED)
    database.write(
        programming.record_program_step, uuid, ProgramStep.LOADING, 'x' * 1000
    )
    assert read_program_job(database, uuid).step is ProgramStep.LOADING
    database.write(programming.end_program_job, uuid, None)
    last = read_program_job(database, uuid)
    assert (last.state, last.progress, last.reason) == (ProgramState.DONE, 100, '')


def test_program_job_failed_keeps_step_and_reason(database: Database) -> None:
    uuid = add_program_job(database)
    database.write(programming.record_program_step, uuid, ProgramStep.LOADING)
    database.write(programming.end_program_job, uuid, 'CRC error' * 100)
    database.write(programming.record_program_step, uuid, ProgramStep.CHECKING)
    database.write(programming.end_program_job, uuid, None)
    failed = read_program_job(database, uuid)
    assert (failed.state, failed.step) == (ProgramState.FAILED, ProgramStep.LOADING)
    assert failed.reason.startswith('CRC error')


def test_find_program_job_of_another_project_raises(database: Database) -> None:
    uuid = add_program_job(database)
    assert database.read(programming.find_program_job, uuid, PROJECT).uuid == uuid
    for project in ('c' * 32, ''):
        with pytest.raises(JobNotFound):
            database.read(programming.find_program_job, uuid, project)


def test_create_program_job_deletes_old_ended_jobs(database: Database) -> None:
    ended_uuid, running_uuid = add_program_job(database), add_program_job(database)
    database.write(programming.end_program_job, ended_uuid, None)
    old = update(Row).values(updated_at=now() - timedelta(days=2))
    database.write(lambda session: session.execute(old))
    add_program_job(database)
    with pytest.raises(JobNotFound):
        read_program_job(database, ended_uuid)
    assert read_program_job(database, running_uuid).uuid == running_uuid
