# SPDX-License-Identifier: Apache-2.0
"""Tests of times in the database: UTC with microseconds in every database."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Dialect

from cyborg_lite.db.core.column_types import UtcDateTime

NOON = datetime(2026, 11, 22, 12, 0, 0, 123456, tzinfo=UTC)
MYSQL: Dialect = mysql.dialect()
POSTGRESQL: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # of SQLAlchemy
SQLITE: Dialect = sqlite.dialect()


def test_times_of_all_zones_are_stored_in_utc() -> None:
    column = UtcDateTime()
    evening = NOON.astimezone(timezone(timedelta(hours=8)))
    for moment in (NOON, evening):
        stored = column.process_bind_param(moment, MYSQL)
        assert stored == NOON.replace(tzinfo=None)
        result = column.process_result_value(stored, MYSQL)
        assert result == NOON
        assert result.tzinfo is UTC


def test_null_stays_null() -> None:
    column = UtcDateTime()
    assert column.process_bind_param(None, MYSQL) is None
    assert column.process_result_value(None, MYSQL) is None


@pytest.mark.parametrize(
    ('dialect', 'name'),
    [
        (MYSQL, 'DATETIME(6)'),
        (POSTGRESQL, 'TIMESTAMP WITHOUT TIME ZONE'),
        (SQLITE, 'DATETIME'),
    ],
)
def test_column_has_microseconds(dialect: Dialect, name: str) -> None:
    """MySQL rounds to seconds without a precision."""
    assert UtcDateTime().compile(dialect=dialect) == name
