# SPDX-License-Identifier: Apache-2.0
"""What became of a load by hand can be asked for a day, by those who may."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.db import program_jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import ProgramJob as Row
from cyborg_lite.db.tables import now
from cyborg_lite.exceptions import JobNotFound
from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep
from tests.fakes.rows import PROJECT


def added(database: Database) -> str:
    uuid = str(uuid4())
    database.write(program_jobs.add, uuid, str(uuid4()), str(uuid4()), PROJECT)
    return uuid


def shown(database: Database, uuid: str) -> ProgramJob:
    return database.read(program_jobs.shown, uuid, None)


def test_it_is_followed_from_step_to_step(database: Database) -> None:
    uuid = added(database)
    first = shown(database, uuid)
    assert (first.state, first.step) == (ProgramState.RUNNING, ProgramStep.ACCEPTED)
    database.write(program_jobs.reach, uuid, ProgramStep.LOADING, 'x' * 1000)
    assert shown(database, uuid).step is ProgramStep.LOADING
    database.write(program_jobs.end, uuid, None)
    last = shown(database, uuid)
    assert (last.state, last.progress, last.reason) == (ProgramState.DONE, 100, '')


def test_a_failure_says_why_and_where_and_stays_one(database: Database) -> None:
    uuid = added(database)
    database.write(program_jobs.reach, uuid, ProgramStep.LOADING)
    database.write(program_jobs.end, uuid, 'CRC error' * 100)
    database.write(program_jobs.reach, uuid, ProgramStep.CHECKING)
    database.write(program_jobs.end, uuid, None)
    failed = shown(database, uuid)
    assert (failed.state, failed.step) == (ProgramState.FAILED, ProgramStep.LOADING)
    assert failed.reason.startswith('CRC error')


def test_other_projects_do_not_learn_of_it(database: Database) -> None:
    uuid = added(database)
    assert database.read(program_jobs.shown, uuid, PROJECT).uuid == uuid
    for strange in ('c' * 32, ''):
        with pytest.raises(JobNotFound):
            database.read(program_jobs.shown, uuid, strange)


def test_what_ended_long_ago_goes_with_the_next(database: Database) -> None:
    ended, running = added(database), added(database)
    database.write(program_jobs.end, ended, None)
    old = update(Row).values(updated_at=now() - timedelta(days=2))
    database.write(lambda session: session.execute(old))
    added(database)
    with pytest.raises(JobNotFound):
        shown(database, ended)
    assert shown(database, running).uuid == running
