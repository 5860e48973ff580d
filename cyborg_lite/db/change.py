# SPDX-License-Identifier: Apache-2.0
"""Running a statement that writes, and telling how many rows it met."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from sqlalchemy import ColumnElement, CursorResult, case
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import UpdateBase

K = TypeVar('K', int, str)


def change(session: Session, statement: UpdateBase) -> int:
    """The number of rows that the WHERE met: how a race is settled.

    Nothing in the session is brought in line: it holds no rows between statements.
    """
    # Of an INSERT the library reads the number only when asked, and some drivers forget
    # it when the cursor is closed.
    options = {'synchronize_session': False, 'preserve_rowcount': True}
    result = session.execute(statement, execution_options=options)
    return cast(CursorResult[Any], result).rowcount


def by_row(column: Any, values: Mapping[K, Any]) -> ColumnElement[Any]:
    """For one UPDATE of many rows: the value of each, chosen by ``column``.

    ``values`` are column values of any one type; all literals get bound parameters.
    """
    return case(dict(values), value=column)
