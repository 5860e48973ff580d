# SPDX-License-Identifier: Apache-2.0
"""Tests of values in columns: times in UTC with microseconds, typed attributes."""

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Dialect

from cyborg_lite import codec
from cyborg_lite.db.core.column_types import UtcDateTime, read_attributes
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model.inventory import typed_attributes

MYSQL: Dialect = mysql.dialect()
POSTGRESQL: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # of SQLAlchemy
SQLITE: Dialect = sqlite.dialect()


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


def test_read_attributes_ignores_types_of_newer_releases() -> None:
    memory = typed_attributes.MEMORY.of(16)
    stored = [codec.dump(memory), {'name': 'x', 'type': 'duration', 'value': '1'}]
    assert read_attributes(stored) == (memory,)
    assert read_attributes(None) == ()


def test_read_attributes_refuses_malformed_attribute() -> None:
    with pytest.raises(MalformedData):
        read_attributes([{'name': 'x', 'type': 'integer'}])
