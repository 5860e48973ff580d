# SPDX-License-Identifier: Apache-2.0
"""What every database must do for us, on each of them."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import pytest
from sqlalchemy import insert, select, text, update
from sqlalchemy.orm import Session

from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Attribute, Device, DeviceProfile
from cyborg_lite.exceptions import DatabaseError, InvalidInput


def _add(session: Session, name: str, description: str = '0') -> None:
    row = {'uuid': str(uuid4()), 'name': name, 'groups': []}
    session.execute(insert(DeviceProfile).values(**row, description=description))


def _names(session: Session) -> list[str]:
    return list(session.scalars(select(DeviceProfile.name)))


def _descriptions(session: Session) -> list[str | None]:
    return list(session.scalars(select(DeviceProfile.description)))


def _count_up(session: Session) -> None:
    """Read, then write what follows from it: what a lost update would show."""
    row = session.scalars(select(DeviceProfile).with_for_update()).one()
    row.description = str(int(row.description or '') + 1)


def _in_threads(number: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_what_was_written_can_be_read_at_once(database: Database) -> None:
    database.write(_add, 'one')
    assert database.read(_names) == ['one']


def test_an_error_undoes_the_whole_transaction(database: Database) -> None:
    def add_two(session: Session) -> None:
        _add(session, 'one')
        raise LookupError

    with pytest.raises(LookupError):
        database.write(add_two)
    assert database.read(_names) == []


def test_a_read_transaction_keeps_no_change(database: Database) -> None:
    database.read(_add, 'one')
    assert database.read(_names) == []


def test_no_update_is_lost_among_threads(database: Database) -> None:
    database.write(_add, 'one')

    def count_to_five() -> None:
        for _ in range(5):
            database.write(_count_up)

    _in_threads(8, count_to_five)
    assert database.read(_descriptions) == ['40']


def test_readers_are_not_kept_waiting_by_a_writer(database: Database) -> None:
    database.write(_add, 'one')
    seen: list[list[str]] = []

    def write_slowly(session: Session) -> None:
        _add(session, 'two')
        session.flush()
        reader = threading.Thread(target=lambda: seen.append(database.read(_names)))
        reader.start()
        reader.join()

    database.write(write_slowly)
    assert seen == [['one']]


def test_transactions_that_lock_in_opposite_order_both_end(server: Database) -> None:
    server.write(_add, 'a')
    server.write(_add, 'b')
    attempts: list[str] = []
    both_hold_one = threading.Barrier(2)

    def touch(session: Session, first: str, second: str) -> None:
        attempts.append(first)
        meet = len(attempts) <= 2
        _touch(session, first)
        if meet:
            both_hold_one.wait()
        _touch(session, second)

    other = threading.Thread(target=lambda: server.write(touch, 'b', 'a'))
    other.start()
    server.write(touch, 'a', 'b')
    other.join()
    assert server.read(_descriptions) == ['1', '1']
    assert len(attempts) == 3


def _touch(session: Session, name: str) -> None:
    mine = update(DeviceProfile).where(DeviceProfile.name == name)
    session.execute(mine.values(description='1'))


def test_foreign_keys_are_enforced(database: Database) -> None:
    orphan = insert(Attribute).values(uuid='u', deployable_id=42, key='k', value='v')
    with pytest.raises(DatabaseError):
        database.write(lambda session: session.execute(orphan))


def test_every_character_is_kept(database: Database) -> None:
    strange = 'größe 加速器 \N{ROCKET} \\ " \' %s :x'

    def store(session: Session) -> None:
        session.add(
            DeviceProfile(
                uuid='u', name='n', description=strange, groups=[{'accel:a': strange}]
            )
        )

    database.write(store)
    [row] = database.read(
        lambda session: session.execute(
            select(DeviceProfile.description, DeviceProfile.groups)
        ).all()
    )
    assert row == (strange, [{'accel:a': strange}])


def test_names_differ_by_the_case_of_a_letter(database: Database) -> None:
    database.write(_add, 'profile')
    database.write(_add, 'Profile')
    wanted = select(DeviceProfile.name).where(DeviceProfile.name == 'profile')
    names = database.read(lambda session: session.scalars(wanted).all())
    assert names == ['profile']


def test_a_time_comes_back_to_the_microsecond_and_in_utc(database: Database) -> None:
    moment = datetime(2026, 11, 21, 5, 53, 43, 501846, timezone(timedelta(hours=3)))
    profile = DeviceProfile(uuid='u', name='n', groups=[], created_at=moment)
    database.write(lambda session: session.add(profile))
    [row] = database.read(lambda session: session.scalars(select(DeviceProfile)).all())
    assert row.created_at == moment
    assert row.created_at.utcoffset() == timedelta(0)


def test_text_that_cannot_be_stored_is_the_fault_of_the_caller(
    database: Database,
) -> None:
    with pytest.raises(InvalidInput) as caught:
        database.write(_add, 'a\ud800b')
    assert 'INSERT' not in str(caught.value)


def test_a_zero_character_is_stored_or_refused(database: Database) -> None:
    if database.engines[0].dialect.name == 'postgresql':
        with pytest.raises(InvalidInput):
            database.write(_add, 'a\0b')
    else:
        database.write(_add, 'a\0b')
        assert database.read(_names) == ['a\0b']


def test_a_missing_table_is_told_without_sql(database: Database) -> None:
    with pytest.raises(DatabaseError) as caught:
        database.read(lambda session: session.execute(text('SELECT 1 FROM nowhere')))
    assert 'nowhere' not in str(caught.value)


def test_a_closed_database_opens_again(database: Database) -> None:
    database.write(_add, 'one')
    database.close()
    assert database.read(_names) == ['one']


def test_a_lost_connection_is_replaced(server: Database) -> None:
    attempts: list[int] = []

    def be_cut_off(session: Session) -> int:
        attempts.append(1)
        if len(attempts) == 1:
            _cut_off(session)
        return session.scalar(select(Device.id).limit(1)) or 0

    assert server.write(be_cut_off) == 0
    assert len(attempts) == 2


def _cut_off(session: Session) -> None:
    if session.get_bind().dialect.name == 'mysql':
        own = session.scalar(text('SELECT CONNECTION_ID()'))
        kill = text(f'KILL {own}')
    else:
        kill = text('SELECT pg_terminate_backend(pg_backend_pid())')
    session.execute(kill)
