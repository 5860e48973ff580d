# SPDX-License-Identifier: Apache-2.0
"""Upsert: insert or update a row in one statement, also concurrently."""

import uuid
from functools import partial
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import DeviceProfile
from tests.builders.table_rows import read_column
from tests.support.concurrent_calls import run_at_once
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
    return read_column(database, select(DeviceProfile.description))


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
    assert run_at_once([partial(database.write, _put, 'changed')] * 6) == [None] * 6
    assert _list_descriptions(database) == ['changed']
