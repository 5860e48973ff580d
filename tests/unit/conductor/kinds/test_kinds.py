# SPDX-License-Identifier: Apache-2.0
"""What does a job is found by its file, and a new kind is one more file."""

import importlib
from pathlib import Path
from unittest.mock import Mock

import pytest

from cyborg_lite.conductor import kinds
from cyborg_lite.conductor.audit import AuditRules
from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.conductor.kinds.workplace import Workplace
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.model.jobs import Kind, NewJob
from tests.unit.conductor.test_binding import RULES

SONG = """
from queue import SimpleQueue

from cyborg_lite.db import jobs

KIND = 'song'
sung = SimpleQueue()


class Song:
    def __init__(self, database):
        self.database = database

    def run(self, job):
        sung.put(job.payload['words'])
        self.database.write(jobs.finish, job)

    def expire(self, job, reason):
        self.database.write(jobs.finish, job)


def handler(workplace):
    return Song(workplace.database)
"""


def workplace(database: Database) -> Workplace:
    # What they talk to is not asked for anything here.
    return Workplace(
        database=database,
        placement=Mock(),
        nova=Mock(),
        agents=Mock(),
        loader=Mock(),
        sync=Mock(),
        metrics=Metrics(),
        rules=RULES,
        audit_rules=AuditRules(grace=60, require_allocation=True),
    )


def test_whatever_is_called_for_is_done(database: Database) -> None:
    assert set(kinds.handlers(workplace(database))) == set(Kind)


def test_a_new_kind_is_one_file(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'song.py').write_text(SONG)
    monkeypatch.setattr(kinds, '__path__', [*kinds.__path__, str(tmp_path)])
    handlers = kinds.handlers(workplace(database))
    runner = JobRunner(database, handlers, owner_of_process(30), workers=1)
    runner.start()
    database.write(jobs.add, NewJob('song', {'words': 'la la'}))
    runner.wake()
    song = importlib.import_module(f'{kinds.__name__}.song')
    assert song.sung.get(timeout=30) == 'la la'
    runner.stop()
    runner.wait()
    assert database.read(jobs.count) == ()
