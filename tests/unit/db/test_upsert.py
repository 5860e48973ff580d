# SPDX-License-Identifier: Apache-2.0
"""A row is inserted or changed, in one statement, whoever else does the same."""

import threading
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import DeviceProfile
from cyborg_lite.db.upsert import upsert
from tests.fakes.statements import statements


def _put(session: Session, description: str, changed: dict[str, Any]) -> None:
    """Any: column values."""
    row = {'uuid': 'a', 'name': 'a', 'groups': [], 'description': description}
    upsert(session, DeviceProfile, row, (DeviceProfile.name,), changed)


def _all(database: Database) -> list[str | None]:
    wanted = select(DeviceProfile.description)
    return list(database.read(lambda session: session.scalars(wanted).all()))


def test_the_first_time_inserts_and_the_second_changes(database: Database) -> None:
    with statements(database) as seen:
        database.write(_put, 'new', {'description': 'changed'})
        assert _all(database) == ['new']
        database.write(_put, 'new', {'description': 'changed'})
    assert _all(database) == ['changed']
    assert len(seen) == 3


def test_a_change_may_build_on_what_is_there(database: Database) -> None:
    more = DeviceProfile.description + '!'
    for _ in range(3):
        database.write(_put, 'new', {'description': more})
    assert _all(database) == ['new!!']


def test_what_is_not_named_stays(database: Database) -> None:
    database.write(_put, 'first', {'description': 'x'})
    database.write(_put, 'second', {'uuid': 'other'})
    assert _all(database) == ['first']


def test_many_at_once_leave_one_row(database: Database) -> None:
    together = threading.Barrier(6)
    failures: list[BaseException] = []

    def put() -> None:
        together.wait()
        try:
            database.write(_put, 'new', {'description': 'changed'})
        except BaseException as error:  # noqa: BLE001  # shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=put) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert _all(database) == ['changed']
