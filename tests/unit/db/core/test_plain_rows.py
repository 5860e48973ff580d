# SPDX-License-Identifier: Apache-2.0
"""Rows that the database sends as JSON: equal to the columns that it sends alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.plain_rows import PlainRow
from cyborg_lite.db.core.tables import Base, Device, DeviceProfile, now
from cyborg_lite.model.queries import Query
from tests.builders.listed_rows import (
    ListRows,
    add_three_rows_each,
    list_arqs,
    list_devices,
    list_profiles,
)
from tests.builders.rows import add_arqs

TEXTS = [
    '',
    'Größe 日本 🚀',
    '"quoted" \\ / \'single\'',
    'tab\t line\n return\r escape\x1b delete\x7f',
    '\u2028 \ufeff \u00a0',
    '{"json": [1, null]}',
    'null',
    '2026-01-02 03:04:05',
]
JSON_VALUES: list[Any] = [
    {},
    {'a': 'b'},
    {'nested': [{'x': None}, 1, 2.5, True, '']},
    {'text': ''.join(TEXTS)},
    [1, 'two'],
    None,
]
NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
TIMES = [NOW, NOW + timedelta(microseconds=1), NOW + timedelta(seconds=0.5)]


def add_rows(database: Database, table: type[Base], rows: list[dict[str, Any]]) -> None:
    """Insert rows."""
    database.write(lambda session: session.execute(insert(table), rows) and None)


def device(number: int, **columns: Any) -> dict[str, Any]:
    """Return the columns of a device."""
    return {
        'uuid': f'00000000-0000-4000-8000-{number:012d}',
        'hostname': 'compute-1',
        'hardware_id': str(number),
        'control_address': str(number),
        'type': 'GPU',
        'vendor': '10de',
        'model': 'T4',
        'driver': 'fake',
        'created_at': now(),
        **columns,
    }


def read_both(database: Database, table: Any) -> tuple[list[Any], list[Any]]:
    """Return the rows of a table as JSON, and by column."""

    def read(session: Session) -> tuple[list[Any], list[Any]]:
        plain = session.scalars(select(PlainRow(table)).order_by(table.id)).all()
        statement = select(*table.__table__.columns).order_by(table.id)
        return [tuple(row) for row in plain], [
            tuple(row) for row in session.execute(statement)
        ]

    return database.read(read)


@pytest.mark.parametrize(
    'values',
    [
        {'model': TEXTS},
        {'std_board_info': JSON_VALUES},
        {'health_since': [*TIMES, None]},
        {'generation': [0, 2**31 - 1]},
    ],
    ids=lambda values: next(iter(values)),
)
def test_read_plain_row_equals_columns(
    database: Database, values: dict[str, list[Any]]
) -> None:
    ((column, items),) = values.items()
    rows = [device(number, **{column: item}) for number, item in enumerate(items)]
    add_rows(database, Device, rows)
    plain, by_column = read_both(database, Device)
    assert plain == by_column
    assert len(plain) == len(items)


def test_read_plain_row_converts_booleans(database: Database) -> None:
    profiles = [
        {
            'uuid': f'00000000-0000-4000-8000-{number:012d}',
            'name': f'p{number}',
            'groups': [],
            'enabled': bool(number),
            'created_at': now(),
        }
        for number in range(2)
    ]
    add_rows(database, DeviceProfile, profiles)
    plain, by_column = read_both(database, DeviceProfile)
    assert plain == by_column
    kinds = [[type(value) for value in row] for row in plain]
    assert kinds == [[type(value) for value in row] for row in by_column]


@pytest.mark.parametrize('list_rows', [list_devices, list_arqs, list_profiles])
@pytest.mark.parametrize('detailed', [False, True])
def test_list_rows_reads_one_column(
    database: Database, list_rows: ListRows, detailed: bool
) -> None:
    """The cost of a list in a Python driver is that of its cells."""
    add_three_rows_each(database)
    add_arqs(database, 3)
    widths: list[int] = []

    # Any: objects of SQLAlchemy and of the database driver.
    def record(_connection: Any, cursor: Any, *_: Any) -> None:
        if cursor.description:
            widths.append(len(cursor.description))

    engine = database.engines[-1]
    event.listen(engine, 'after_cursor_execute', record)
    list_rows(database, Query(limit=3, detailed=detailed))
    event.remove(engine, 'after_cursor_execute', record)
    assert widths[0] == 1
    assert sum(widths) <= 3  # the ARQs of devices: device and ARQ
