# SPDX-License-Identifier: Apache-2.0
"""Statements that write: run them, count the matched rows, insert or update.

Statements of a bind are built once, when their module is imported, with named
parameters for the values: building a statement takes more CPU than running it.
"""

import importlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Update, case, delete, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.sql.dml import UpdateBase

from cyborg_lite.errors.requests import GenerationConflict

K = TypeVar('K', int, str)
Values = Mapping[str, Any]  # each of the type of its column
Columns = Sequence[InstrumentedAttribute[Any]]  # of any types


def change(
    session: Session,
    statement: UpdateBase,
    values: Values | Sequence[Values] | None = None,
) -> int:
    """Run a statement and return the number of rows that its WHERE matched.

    The number decides races: the statement of only one transaction matches the row.
    Objects of the session are not refreshed; it holds no rows between statements.

    :param values: named parameters and column values; a sequence for an INSERT of
        several rows
    """
    # SQLAlchemy reads the row count of an INSERT only on request, and some drivers
    # discard it when the cursor is closed.
    options = {'preserve_rowcount': True}
    connection = session.connection()
    return connection.execute(statement, values, execution_options=options).rowcount


MAX_DELETED: Final = 500
"""Rows that one call of ``delete_some`` deletes."""


# Any: a class of `tables` that has the column `id`.
def delete_some(session: Session, table: Any, *conditions: ColumnElement[bool]) -> int:
    """Delete the first rows that match, so that no transaction is large.

    :returns: number of deleted rows, at most ``MAX_DELETED``
    """
    rows = select(table.id).where(*conditions).order_by(table.id).limit(MAX_DELETED)
    ids = session.scalars(rows).all()
    return change(session, delete(table).where(table.id.in_(ids))) if ids else 0


def value_by_row(column: Any, values: Mapping[K, Any]) -> ColumnElement[Any]:
    """Return SQL for the value of each row in one UPDATE of many rows.

    :param column: the column that identifies the rows
    :param values: by the value of that column; sent as bound parameters
    """
    return case(dict(values), value=column)


def values_by_row(
    statement: Update, key: Any, columns: Mapping[str, Mapping[K, Any]]
) -> tuple[Update, dict[str, Any]]:
    """Return the statement that sets columns row by row, and its parameters.

    :param key: the column that identifies the rows
    :param columns: by name of a column: its values, by row
    """
    common = {
        name: next(iter(by_row.values()))
        for name, by_row in columns.items()
        if len(set(by_row.values())) == 1
    }
    differing = {
        name: value_by_row(key, by_row)
        for name, by_row in columns.items()
        if name not in common
    }
    return (statement.values(**differing) if differing else statement), common


@dataclass(frozen=True, slots=True)
class Upsert:
    """Inserts rows of a table, or updates existing ones, in one statement.

    Reading first would leave a gap in which another process can write the same row. The
    statement is built once for each kind of database.
    """

    table: Any  # a class of `tables`
    keys: Columns  # of a unique constraint: a row with the same keys is updated
    changed: Collection[str] = ()  # columns that get the value of the new row
    # SQL for other columns that an update sets; may use the stored row.
    also: Values = field(default_factory=dict)
    # SQL for columns of the new row that get no values.
    computed: Values = field(default_factory=dict)
    # By name of the dialect.
    _statements: dict[str, UpdateBase] = field(default_factory=dict, init=False)

    def run(self, session: Session, values: Values | Sequence[Values]) -> None:
        """Insert or update one row, or several rows with the same columns."""
        name = session.connection().dialect.name
        if name not in self._statements:
            self._statements[name] = self._build(name)
        change(session, self._statements[name], values)

    def _build(self, dialect: str) -> UpdateBase:
        # The modules of all dialects take 4 MB, and a process has one database.
        module = importlib.import_module(f'sqlalchemy.dialects.{dialect}')
        insert = module.insert(self.table).values(**self.computed)
        is_mysql = dialect == 'mysql'
        new_row = insert.inserted if is_mysql else insert.excluded
        updated = {name: new_row[name] for name in self.changed} | {**self.also}
        if is_mysql:
            statement: UpdateBase = insert.on_duplicate_key_update(**updated)
        else:
            statement = insert.on_conflict_do_update(
                index_elements=self.keys, set_=updated
            )
        return statement


# --- generations: numbers by which a client detects that another client was faster ---
#
# A change compares the generation in an UPDATE, which locks the row until the end of
# the transaction. Of two concurrent changes with the same expected generation one is
# refused.


# Any: a class of `tables` that has the columns `uuid` and `generation`.
def check_generation(
    session: Session, table: Any, uuid: str, expected: int | None
) -> None:
    """Lock a row whose generation is the expected one, until the transaction ends.

    Call it after the check that the row exists, and before the change.

    :param expected: None: any generation
    :raises GenerationConflict: the row has another generation
    """
    if expected is None:
        return
    is_expected = table.uuid == uuid, table.generation == expected
    unchanged = {name: getattr(table, name) for name in ('generation', 'updated_at')}
    if not change(session, update(table).where(*is_expected).values(**unchanged)):
        raise GenerationConflict(uuid=uuid, generation=expected)


def raise_generation(session: Session, table: Any, uuid: str) -> None:
    """Increase the generation of a row whose change is stored in other rows."""
    unchanged = {'updated_at': table.updated_at}
    change(session, update(table).where(table.uuid == uuid).values(**unchanged))
