# SPDX-License-Identifier: Apache-2.0
"""Required behaviour of each database: transactions, locks, text and times."""

import threading
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import pytest
from sqlalchemy import insert, select, text, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device, DeviceProfile
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.daemons import DatabaseError, ServiceUnavailable
from tests.servers.databases import database_fixture

postgresql = database_fixture('postgresql')


def _add(session: Session, name: str, description: str = '0') -> None:
    row = {'uuid': str(uuid4()), 'name': name, 'groups': []}
    session.execute(insert(DeviceProfile).values(**row, description=description))


def _names(session: Session) -> list[str]:
    return list(session.scalars(select(DeviceProfile.name)))


def _descriptions(session: Session) -> list[str | None]:
    return list(session.scalars(select(DeviceProfile.description)))


def test_write_error_rolls_back(database: Database) -> None:
    def add_two(session: Session) -> None:
        _add(session, 'one')
        raise LookupError

    with pytest.raises(LookupError):
        database.write(add_two)
    assert database.read(_names) == []


def test_read_rolls_back_changes(database: Database) -> None:
    database.read(_add, 'one')
    assert database.read(_names) == []


def test_read_does_not_wait_for_writer(database: Database) -> None:
    database.write(_add, 'one')
    results: list[list[str]] = []

    def write_slowly(session: Session) -> None:
        _add(session, 'two')
        session.flush()
        reader = threading.Thread(target=lambda: results.append(database.read(_names)))
        reader.start()
        reader.join()

    database.write(write_slowly)
    assert results == [['one']]


def test_write_deadlock_is_retried(server: Database) -> None:
    server.write(_add, 'a')
    server.write(_add, 'b')
    attempts: list[str] = []
    barrier = threading.Barrier(2)

    def update_two(session: Session, first: str, second: str) -> None:
        attempts.append(first)
        is_first_attempt = len(attempts) <= 2
        _update_profile(session, first)
        if is_first_attempt:
            barrier.wait()
        _update_profile(session, second)

    thread = threading.Thread(target=lambda: server.write(update_two, 'b', 'a'))
    thread.start()
    server.write(update_two, 'a', 'b')
    thread.join()
    assert server.read(_descriptions) == ['1', '1']
    assert len(attempts) == 3


def _update_profile(session: Session, name: str) -> None:
    statement = update(DeviceProfile).where(DeviceProfile.name == name)
    session.execute(statement.values(description='1'))


def test_write_keeps_every_character(database: Database) -> None:
    description = 'größe 加速器 \N{ROCKET} \\ " \' %s :x'

    def store(session: Session) -> None:
        session.add(
            DeviceProfile(
                uuid='u',
                name='n',
                description=description,
                groups=[{'accel:a': description}],
            )
        )

    database.write(store)
    [row] = database.read(
        lambda session: session.execute(
            select(DeviceProfile.description, DeviceProfile.groups)
        ).all()
    )
    assert row == (description, [{'accel:a': description}])


def test_text_comparison_is_case_sensitive(database: Database) -> None:
    database.write(_add, 'profile')
    database.write(_add, 'Profile')
    query = select(DeviceProfile.name).where(DeviceProfile.name == 'profile')
    names = database.read(lambda session: session.scalars(query).all())
    assert names == ['profile']


def test_time_is_read_in_utc_with_microseconds(database: Database) -> None:
    moment = datetime(2026, 11, 21, 5, 53, 43, 501846, timezone(timedelta(hours=3)))
    profile = DeviceProfile(uuid='u', name='n', groups=[], created_at=moment)
    database.write(lambda session: session.add(profile))
    [row] = database.read(lambda session: session.scalars(select(DeviceProfile)).all())
    assert row.created_at == moment
    assert row.created_at.utcoffset() == timedelta(0)


def test_write_invalid_text_raises_invalid_input(database: Database) -> None:
    with pytest.raises(InvalidInput) as caught:
        database.write(_add, 'a\ud800b')
    assert 'INSERT' not in str(caught.value)


def test_write_null_character_is_stored_or_refused(database: Database) -> None:
    if database.engines[0].dialect.name == 'postgresql':
        with pytest.raises(InvalidInput):
            database.write(_add, 'a\0b')
    else:
        database.write(_add, 'a\0b')
        assert database.read(_names) == ['a\0b']


def test_read_missing_table_error_hides_sql(database: Database) -> None:
    with pytest.raises(DatabaseError) as caught:
        database.read(lambda session: session.execute(text('SELECT 1 FROM nowhere')))
    assert 'nowhere' not in str(caught.value)


def test_closed_database_opens_again(database: Database) -> None:
    database.write(_add, 'one')
    database.close()
    assert database.read(_names) == ['one']


def test_write_lost_connection_is_replaced(server: Database) -> None:
    attempts: list[int] = []

    def lose_connection(session: Session) -> int:
        attempts.append(1)
        if len(attempts) == 1:
            _kill_connection(session)
        return session.scalar(select(Device.id).limit(1)) or 0

    assert server.write(lose_connection) == 0
    assert len(attempts) == 2


def _kill_connection(session: Session) -> None:
    if session.get_bind().dialect.name == 'mysql':
        connection_id = session.scalar(text('SELECT CONNECTION_ID()'))
        kill = text(f'KILL {connection_id}')
    else:
        kill = text('SELECT pg_terminate_backend(pg_backend_pid())')
    session.execute(kill)


def test_write_read_only_postgresql_is_service_unavailable(
    postgresql: Database,
) -> None:
    """A standby, and a primary that is demoted, refuse writes in this way."""

    def write(session: Session) -> None:
        session.execute(text('SET TRANSACTION READ ONLY'))
        _add(session, 'one')

    with pytest.raises(ServiceUnavailable):
        postgresql.write(write)


def test_write_after_loss_of_idle_connection_is_repeated(server: Database) -> None:
    """The pool does not test its connections before a transaction."""
    is_mysql = server.engines[0].dialect.name == 'mysql'
    identify = 'CONNECTION_ID()' if is_mysql else 'pg_backend_pid()'
    number = server.read(lambda session: session.scalar(text(f'SELECT {identify}')))
    kill = f'KILL {number}' if is_mysql else f'SELECT pg_terminate_backend({number})'
    operator = Database(server.engines[0].url.render_as_string(hide_password=False))
    operator.write(lambda session: session.connection().execute(text(kill)).close())
    operator.close()
    server.write(_add, 'one')
    assert server.read(_names) == ['one']


def test_transaction_sends_no_statement_of_the_pool(
    server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.read(_names)  # the first connection of an engine has statements of its own
    dialect = server.engines[0].dialect
    rollbacks: list[object] = []
    monkeypatch.setattr(dialect, 'do_ping', lambda _connection: pytest.fail('ping'))
    monkeypatch.setattr(dialect, 'do_rollback', rollbacks.append)
    for name in ('one', 'two'):
        server.write(_add, name)
    assert rollbacks == []
    assert server.read(_names) == ['one', 'two']
    assert len(rollbacks) == 1
