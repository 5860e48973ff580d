# SPDX-License-Identifier: Apache-2.0
"""Upsert: insert or update a row in one statement, also concurrently."""

import threading
import uuid
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import DeviceProfile
from tests.support.sql_statements import statements

_KEYS: Final = [DeviceProfile.name]
_CHANGE: Final = Upsert(DeviceProfile, _KEYS, ['description'])


def _put(session: Session, description: str, upsert: Upsert = _CHANGE) -> None:
    # PostgreSQL resolves a conflict of the named key only, so other keys must differ.
    row = {
        'uuid': str(uuid.uuid4()),
        'name': 'a',
        'groups': [],
        'description': description,
    }
    upsert.run(session, row)


def _list_descriptions(database: Database) -> list[str | None]:
    query = select(DeviceProfile.description)
    return list(database.read(lambda session: session.scalars(query).all()))


def test_upsert_inserts_first_and_updates_second(database: Database) -> None:
    with statements(database) as sql:
        database.write(_put, 'new')
        assert _list_descriptions(database) == ['new']
        database.write(_put, 'changed')
    assert _list_descriptions(database) == ['changed']
    assert len(sql) == 3


def test_upsert_expression_uses_stored_value(database: Database) -> None:
    appended = {'description': DeviceProfile.description + '!'}
    for _ in range(3):
        database.write(_put, 'new', Upsert(DeviceProfile, _KEYS, also=appended))
    assert _list_descriptions(database) == ['new!!']


def test_upsert_keeps_other_columns(database: Database) -> None:
    database.write(_put, 'first')
    database.write(_put, 'second', Upsert(DeviceProfile, _KEYS, ['uuid']))
    assert _list_descriptions(database) == ['first']


def test_upsert_concurrent_leaves_one_row(database: Database) -> None:
    barrier = threading.Barrier(6)
    failures: list[BaseException] = []

    def write_row() -> None:
        barrier.wait()
        try:
            database.write(_put, 'changed')
        except BaseException as error:  # noqa: BLE001  # shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=write_row) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert _list_descriptions(database) == ['changed']
