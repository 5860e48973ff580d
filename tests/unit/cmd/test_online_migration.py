# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-dbsync online_data_migrations`` and ``upgrade --contract``."""

from collections.abc import Callable

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import dbsync
from cyborg_lite.db import services
from cyborg_lite.db.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.tables import AttachHandle, Job
from cyborg_lite.model.jobs import JobType, NewJob
from cyborg_lite.version import version
from tests.builders.rows import HOST, add_card

Out = pytest.CaptureFixture[str]
Run = Callable[..., int]


@pytest.fixture
def run(write_config: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs dbsync with arguments."""
    monkeypatch.setattr(configuration, 'set_up_logging', lambda _conf: None)
    options = write_config()
    return lambda *arguments: dbsync.main([*options, *arguments])


@pytest.fixture
def old_jobs(database: Database) -> int:
    """Add release jobs without a host, as an earlier release does."""
    add_card(database, 3)
    return database.write(_add_old_jobs)


def _add_old_jobs(session: Session) -> int:
    uuids = session.scalars(select(AttachHandle.uuid)).all()
    for uuid in uuids:
        queue.add_job(session, NewJob(JobType.RELEASE, key=uuid))
    session.execute(update(Job).values(host=None))
    return len(uuids)


def list_hosts(session: Session) -> list[str | None]:
    return sorted(session.scalars(select(Job.host)), key=str)


def test_online_migrations_fill_hosts_in_batches(
    run: Run, database: Database, old_jobs: int, capsys: Out
) -> None:
    assert old_jobs == 3
    assert run('online_data_migrations', '--max-count', '2') == 1
    assert 'Rows are left: hosts of release jobs' in capsys.readouterr().out
    assert database.read(list_hosts) == [None, HOST, HOST]
    assert run('online_data_migrations') == 0
    assert database.read(list_hosts) == [HOST] * 3
    assert run('online_data_migrations') == 0


def test_contract_unmigrated_rows_is_refused(
    run: Run, old_jobs: int, capsys: Out
) -> None:
    assert run('upgrade', '--contract') == 1
    assert 'online_data_migrations' in capsys.readouterr().err
    run('online_data_migrations')
    assert run('upgrade', '--contract') == 0


def test_contract_daemon_of_other_version_is_refused(
    run: Run, database: Database, capsys: Out
) -> None:
    database.write(services.record_start, 'agent', 'cpu1', '0.0.1')
    assert run('upgrade', '--contract') == 1
    assert 'agent on cpu1 (0.0.1)' in capsys.readouterr().err
    database.write(services.record_start, 'agent', 'cpu1', version())
    assert run('upgrade', '--contract') == 0


def test_expand_of_newest_schema_changes_nothing(run: Run, capsys: Out) -> None:
    assert run('upgrade', '--expand') == 0
    assert 'already at revision' in capsys.readouterr().out
