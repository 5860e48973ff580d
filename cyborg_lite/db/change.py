# SPDX-License-Identifier: Apache-2.0
"""Running a statement that writes, and telling how many rows it met.

What each bind runs is put together once, when its module is loaded, with named
parameters for what differs: to put a statement together takes more CPU than to run it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Update, case
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import UpdateBase

K = TypeVar('K', int, str)
Values = Mapping[str, Any]  # each of the type of its column


def change(
    session: Session,
    statement: UpdateBase,
    values: Values | Sequence[Values] | None = None,
) -> int:
    """The number of rows that the WHERE met: how a race is settled.

    Nothing in the session is brought in line: it holds no rows between statements.

    :param values: of named parameters, and of columns that are to have them; several
        of them: of the rows of an INSERT
    """
    # Of an INSERT the library reads the number only when asked, and some drivers forget
    # it when the cursor is closed.
    options = {'preserve_rowcount': True}
    connection = session.connection()
    return connection.execute(statement, values, execution_options=options).rowcount


def by_row(column: Any, values: Mapping[K, Any]) -> ColumnElement[Any]:
    """For one UPDATE of many rows: the value of each, chosen by ``column``.

    ``values`` are column values of any one type; all literals get bound parameters.
    """
    return case(dict(values), value=column)


def for_each(
    statement: Update, key: Any, columns: Mapping[str, Mapping[K, Any]]
) -> tuple[Update, dict[str, Any]]:
    """The statement that sets columns to the value of each row, and its parameters.

    :param key: the column that tells the rows apart
    :param columns: by the name of a column: values of its type, by row
    """
    alike = {
        name: next(iter(of_row.values()))
        for name, of_row in columns.items()
        if len(set(of_row.values())) == 1
    }
    differing = {
        name: by_row(key, of_row)
        for name, of_row in columns.items()
        if name not in alike
    }
    return (statement.values(**differing) if differing else statement), alike
