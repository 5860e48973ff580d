# SPDX-License-Identifier: Apache-2.0
"""Rows of any table, changed and read without the functions of the service."""

from typing import Any, TypeVar

from sqlalchemy import Select, func, select, update
from sqlalchemy.sql import Executable

from cyborg_lite.db.core.engine import Database

T = TypeVar('T')


# Any, here and below: classes of `tables`, and values of their columns.
def execute(database: Database, statement: Executable, *rows: Any) -> None:
    database.write(lambda session: session.execute(statement, *rows) and None)


def change_rows(
    database: Database, table: Any, *conditions: Any, **values: Any
) -> None:
    """Set columns of the rows that match all conditions."""
    execute(database, update(table).where(*conditions).values(**values))


def read_column(database: Database, statement: Select[T]) -> list[T]:
    """Return the only column of a SELECT."""
    return database.read(lambda session: list(session.scalars(statement)))


def count_rows(database: Database, table: Any) -> int:
    return read_column(database, select(func.count()).select_from(table))[0]
