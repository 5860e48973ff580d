# SPDX-License-Identifier: Apache-2.0
"""Transactions that do not end well: which are tried again, and what a caller hears."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_db import exception as db
from sqlalchemy import Connection, event, exc, select, text
from sqlalchemy.orm import Session

from cyborg_lite.db import engine
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import DeviceProfile
from cyborg_lite.exceptions import (
    ConfigurationError,
    Conflict,
    DatabaseError,
    ServiceUnavailable,
)
from tests.fakes.statements import statements, transactions, writes


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which are not taken."""
    taken: list[float] = []
    monkeypatch.setattr('time.sleep', taken.append)
    return taken


class Work:
    """Fails as often as told, then returns how often it was begun."""

    def __init__(self, error: Exception, times: int) -> None:
        self._error = error
        self._times = times
        self.begun = 0

    def __call__(self, session: Session) -> int:
        self.begun += 1
        _add(session)
        if self.begun <= self._times:
            raise self._error
        return self.begun


class _OfPostgresql(Exception):
    sqlstate = '40001'


_CONFLICTS = [
    db.DBDeadlock(),
    db.DBConsistencyError(),
    exc.OperationalError('UPDATE', {}, _OfPostgresql()),
]


def _add(session: Session) -> None:
    session.add(DeviceProfile(uuid='u', name='n', groups=[]))


def _count(session: Session) -> int:
    return len(session.scalars(select(DeviceProfile)).all())


def test_nothing_is_opened_until_it_is_used(tmp_path: Path) -> None:
    database = Database(f'sqlite:///{tmp_path}/file')
    assert list(tmp_path.iterdir()) == []
    database.close()
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_address_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError):
        Database('nonsense')


def test_options_of_the_library_can_be_given(tmp_path: Path) -> None:
    database = Database(
        f'sqlite:///{tmp_path}/file',
        max_pool_size=3,
        max_overflow=1,
        pool_timeout=1,
        connection_recycle_time=60,
        mysql_wsrep_sync_wait=None,
    )
    assert database.read(lambda session: session.scalar(text('SELECT 1'))) == 1
    database.close()


@pytest.mark.parametrize('error', _CONFLICTS, ids=lambda error: type(error).__name__)
def test_a_conflict_is_tried_again_from_the_start(
    database: Database, error: Exception
) -> None:
    work = Work(error, times=5)
    assert database.write(work) == 6
    assert database.read(_count) == 1


@pytest.mark.parametrize('error', _CONFLICTS, ids=lambda error: type(error).__name__)
def test_a_conflict_that_does_not_end_is_told(
    database: Database, error: Exception, naps: list[float]
) -> None:
    work = Work(error, times=100)
    with pytest.raises(ServiceUnavailable, match='the database'):
        database.write(work)
    assert work.begun == 6
    assert sum(naps) < 6
    assert database.read(_count) == 0


def test_a_connection_that_is_lost_in_time_is_replaced(database: Database) -> None:
    work = Work(db.DBConnectionError(), times=2)
    assert database.write(work) == 3
    assert database.read(_count) == 1


def test_a_database_that_stays_away_is_told_soon(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, '_CONNECTION_PATIENCE', 0)
    work = Work(db.DBConnectionError(), times=100)
    with pytest.raises(ServiceUnavailable, match='the database does not answer'):
        database.write(work)
    assert work.begun == 1


def test_a_commit_that_was_lost_is_not_done_twice(database: Database) -> None:
    """It may well have been done; what it wrote must not be written again."""
    work = Work(db.DBError(), times=0)

    def lose(_connection: Connection) -> None:
        raise db.DBConnectionError

    event.listen(database.engines[0], 'commit', lose)
    try:
        with pytest.raises(ServiceUnavailable):
            database.write(work)
    finally:
        event.remove(database.engines[0], 'commit', lose)
    assert work.begun == 1


def test_an_error_of_ours_passes_as_it_is(database: Database) -> None:
    work = Work(Conflict(reason='no'), times=100)
    with pytest.raises(Conflict, match='no'):
        database.write(work)
    assert work.begun == 1
    assert database.read(_count) == 0


@pytest.mark.parametrize(
    'error', [db.DBError(), exc.ProgrammingError('SELECT', {}, Exception('secret'))]
)
def test_any_other_complaint_is_told_without_its_words(
    database: Database, error: Exception
) -> None:
    with pytest.raises(DatabaseError) as caught:
        database.write(Work(error, times=100))
    assert 'secret' not in str(caught.value)


def test_rows_that_wait_to_be_written_count_as_work(database: Database) -> None:
    """What only the flush finds out is an error of the work, not of the commit."""

    def add_twice(session: Session) -> None:
        _add(session)
        _add(session)

    with pytest.raises(DatabaseError):
        database.write(add_twice)


# --- SQLite ---


def test_one_connection_stays_so_that_the_log_is_not_folded_each_time(
    database: Database, tmp_path: Path
) -> None:
    log = tmp_path / 'cyborg_lite.sqlite-wal'
    database.write(_add)
    assert log.stat().st_size > 0
    database.close()
    assert not log.exists()


@pytest.mark.parametrize(
    ('pragma', 'value'),
    [('journal_mode', 'wal'), ('foreign_keys', 1), ('busy_timeout', 10000)],
)
def test_connections_are_told_how_to_behave(
    database: Database, pragma: str, value: object
) -> None:
    for run in (database.read, database.write):
        assert run(lambda session: session.scalar(text(f'PRAGMA {pragma}'))) == value


def test_a_writer_has_the_lock_before_it_reads(
    database: Database, tmp_path: Path
) -> None:
    """Else the second of two that read first could not write any more."""
    other = sqlite3.connect(tmp_path / 'cyborg_lite.sqlite', timeout=0)

    def another_begins(session: Session) -> None:
        session.connection()
        with pytest.raises(sqlite3.OperationalError, match='locked'):
            other.execute('BEGIN IMMEDIATE')

    database.write(another_begins)
    other.execute('BEGIN IMMEDIATE')
    database.read(_count)
    other.close()


# --- the twins that tests count with ---


@pytest.fixture
def seen(database: Database) -> Iterator[list[str]]:
    with statements(database) as texts:
        yield texts


def test_statements_are_counted_and_those_that_write_told_apart(
    database: Database, seen: list[str]
) -> None:
    database.write(_add)
    database.read(_count)
    assert len(seen) == 2
    assert writes(seen) == seen[:1]


def test_transactions_are_counted_with_their_ends(database: Database) -> None:
    with transactions(database) as ends:
        database.write(_add)
        with pytest.raises(DatabaseError):
            database.write(_add)
        database.read(_count)
    assert ends == ['commit', 'rollback', 'rollback']
