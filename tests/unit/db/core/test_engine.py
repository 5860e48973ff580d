# SPDX-License-Identifier: Apache-2.0
"""Failed transactions: retries, and the errors that the caller gets."""

import gc
import logging
import sqlite3
import threading
import time
import weakref
from pathlib import Path

import pytest
from oslo_db import exception as db
from sqlalchemy import Connection, event, exc, select, text
from sqlalchemy.orm import Session

from cyborg_lite.db.core import engine
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import DeviceProfile
from cyborg_lite.errors.base import Conflict
from cyborg_lite.errors.daemons import (
    ConfigurationError,
    DatabaseError,
    ServiceUnavailable,
)
from tests.support.sql_statements import statements, writes


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses between attempts instead of sleeping."""
    pauses: list[float] = []
    own, sleep = threading.get_ident(), time.sleep

    def record(seconds: float) -> None:
        # Threads of tests before this one may still run.
        if threading.get_ident() == own:
            pauses.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr('time.sleep', record)
    return pauses


class Work:
    """Unit of work that fails a number of times, then returns its number of calls."""

    def __init__(self, error: Exception, times: int) -> None:
        self._error = error
        self._times = times
        self.calls = 0

    def __call__(self, session: Session) -> int:
        self.calls += 1
        _add(session)
        if self.calls <= self._times:
            raise self._error
        return self.calls


class _OfPostgresql(Exception):
    """Serialization failure of a PostgreSQL driver."""

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


def test_database_opens_file_on_first_use(tmp_path: Path) -> None:
    database = Database(f'sqlite:///{tmp_path}/file')
    assert list(tmp_path.iterdir()) == []
    database.close()
    assert list(tmp_path.iterdir()) == []


def test_database_invalid_url_raises() -> None:
    with pytest.raises(ConfigurationError):
        Database('nonsense')


@pytest.mark.parametrize('error', _CONFLICTS, ids=lambda error: type(error).__name__)
def test_write_conflict_is_retried(database: Database, error: Exception) -> None:
    work = Work(error, times=5)
    assert database.write(work) == 6
    assert database.read(_count) == 1


def test_write_lost_connection_is_retried(database: Database) -> None:
    work = Work(db.DBConnectionError(), times=2)
    assert database.write(work) == 3
    assert database.read(_count) == 1


def test_write_database_unreachable_raises_service_unavailable(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, '_RECONNECT_TIMEOUT', 0)
    work = Work(db.DBConnectionError(), times=100)
    with pytest.raises(ServiceUnavailable, match='the database does not answer'):
        database.write(work)
    assert work.calls == 1


def test_write_lost_commit_is_not_retried(database: Database) -> None:
    """The server may have committed, so the work must not run again."""
    work = Work(db.DBError(), times=0)

    def lose_connection(_connection: Connection) -> None:
        raise db.DBConnectionError

    event.listen(database.engines[0], 'commit', lose_connection)
    try:
        with pytest.raises(ServiceUnavailable):
            database.write(work)
    finally:
        event.remove(database.engines[0], 'commit', lose_connection)
    assert work.calls == 1


def test_write_own_error_is_raised_unchanged(database: Database) -> None:
    work = Work(Conflict(reason='no'), times=100)
    with pytest.raises(Conflict, match='no'):
        database.write(work)
    assert work.calls == 1
    assert database.read(_count) == 0


@pytest.mark.parametrize(
    'error', [db.DBError(), exc.ProgrammingError('SELECT', {}, Exception('secret'))]
)
def test_write_other_error_hides_sql(database: Database, error: Exception) -> None:
    with pytest.raises(DatabaseError) as caught:
        database.write(Work(error, times=100))
    assert 'secret' not in str(caught.value)


# --- SQLite ---


def test_sqlite_keeps_connection_and_write_ahead_log(
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
def test_sqlite_connections_have_pragmas(
    database: Database, pragma: str, value: object
) -> None:
    for run in (database.read, database.write):
        assert run(lambda session: session.scalar(text(f'PRAGMA {pragma}'))) == value


def test_sqlite_write_locks_before_first_read(
    database: Database, tmp_path: Path
) -> None:
    """Two transactions that read first could not both write."""
    connection = sqlite3.connect(tmp_path / 'cyborg_lite.sqlite', timeout=0)

    def begin_another(session: Session) -> None:
        session.connection()
        with pytest.raises(sqlite3.OperationalError, match='locked'):
            connection.execute('BEGIN IMMEDIATE')

    database.write(begin_another)
    connection.execute('BEGIN IMMEDIATE')
    database.read(_count)
    connection.close()


@pytest.mark.parametrize('table', ['missing (name)', 'leases (number)'])
def test_rejected_statement_is_logged_without_values(
    database: Database, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    statement = text(f'INSERT INTO {table} VALUES (:name)')
    values = {'name': 'of a tenant'}

    def insert(session: Session) -> None:
        session.connection().execute(statement, values)

    with pytest.raises(DatabaseError) as caught:
        database.write(insert)
    assert caplog.records
    for text_of_driver in ('of a tenant', 'INSERT', 'leases'):
        assert text_of_driver not in caplog.text
    # The error would keep the frames of the transaction, and all that they refer to.
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_error_of_lost_connection_keeps_no_session(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects of ended transactions would otherwise add up with each outage."""
    # pytest keeps its log records, and they refer to the error.
    monkeypatch.setattr(logging.getLogger('oslo_db.api'), 'disabled', True)
    sessions: list[weakref.ref[Session]] = []

    def lose_connection(session: Session) -> None:
        sessions.append(weakref.ref(session))
        session.connection().execute(text('SELECT 1'))
        raise db.DBConnectionError

    errors = []
    for _ in range(3):
        with pytest.raises(ServiceUnavailable) as caught:
            database.write(lose_connection)
        errors.append(caught.value)
        del caught
    gc.collect()
    assert len(errors) == 3
    assert len(sessions) >= 3
    assert not [session for session in sessions if session() is not None]


def test_once_stores_the_call_with_its_first_commit(database: Database) -> None:
    with database.once('call', lambda: Conflict(reason='repeated')):
        with pytest.raises(ZeroDivisionError):
            database.write(lambda _session: 1 / 0)
        with statements(database) as sql:
            database.write(_add)
            database.write(_count)
        assert len(writes(sql)) == 2
    database.write(_count)
    with (
        database.once('call', lambda: Conflict(reason='repeated')),
        pytest.raises(Conflict, match='repeated'),
    ):
        database.write(_count)


# --- recorders of statements and transactions ---
