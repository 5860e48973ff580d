# SPDX-License-Identifier: Apache-2.0
"""A row is inserted or changed, in one statement, whoever else does the same."""

import threading
from typing import Final

from sqlalchemy import String, bindparam, select
from sqlalchemy.orm import Session

from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import DeviceProfile
from cyborg_lite.db.upsert import Upsert
from tests.fakes.statements import statements

_KEYS: Final = [DeviceProfile.name]
_CHANGE: Final = Upsert(DeviceProfile, _KEYS, ['description'])


def _put(session: Session, description: str, what: Upsert = _CHANGE) -> None:
    row = {'uuid': 'a', 'name': 'a', 'groups': [], 'description': description}
    what.run(session, row)


def _all(database: Database) -> list[str | None]:
    wanted = select(DeviceProfile.description)
    return list(database.read(lambda session: session.scalars(wanted).all()))


def test_the_first_time_inserts_and_the_second_changes(database: Database) -> None:
    with statements(database) as seen:
        database.write(_put, 'new')
        assert _all(database) == ['new']
        database.write(_put, 'changed')
    assert _all(database) == ['changed']
    assert len(seen) == 3


def test_a_change_may_build_on_what_is_there(database: Database) -> None:
    more = {'description': DeviceProfile.description + '!'}
    for _ in range(3):
        database.write(_put, 'new', Upsert(DeviceProfile, _KEYS, also=more))
    assert _all(database) == ['new!!']


def test_what_is_not_named_stays(database: Database) -> None:
    database.write(_put, 'first')
    database.write(_put, 'second', Upsert(DeviceProfile, _KEYS, ['uuid']))
    assert _all(database) == ['first']


def test_a_new_row_may_be_computed(database: Database) -> None:
    """From a parameter that is no column."""
    louder = {'description': bindparam('word', type_=String) + '!'}
    shout = Upsert(DeviceProfile, _KEYS, ['description'], computed=louder)
    row = {'uuid': 'a', 'name': 'a', 'groups': []}
    database.write(shout.run, {**row, 'word': 'new'})
    assert _all(database) == ['new!']


def test_several_rows_are_one_statement(database: Database) -> None:
    database.write(_put, 'first')
    rows: list[dict[str, object]] = [
        {'uuid': name, 'name': name, 'groups': [], 'description': 'both'}
        for name in ('a', 'b')
    ]
    with statements(database) as seen:
        database.write(_CHANGE.run, rows)
    assert len(seen) == 1
    assert _all(database) == ['both', 'both']


def test_many_at_once_leave_one_row(database: Database) -> None:
    together = threading.Barrier(6)
    failures: list[BaseException] = []

    def put() -> None:
        together.wait()
        try:
            database.write(_put, 'changed')
        except BaseException as error:  # noqa: BLE001  # shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=put) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert _all(database) == ['changed']
