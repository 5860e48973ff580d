# SPDX-License-Identifier: Apache-2.0
"""Copies of the rows of a database, to put back later."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Table
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Base

Backup = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows by name of the table. Any: columns of all types."""


def back_up(database: Database) -> Backup:
    """Copy all rows."""
    return database.read(_read_all)


def restore(database: Database, backup: Backup) -> None:
    """Replace all rows by those of a copy."""
    database.write(_replace_all, backup)


def _list_tables() -> list[Table]:
    return [table for table in Base.metadata.sorted_tables if table.columns]


def _read_all(session: Session) -> Backup:
    return {
        table.name: [dict(row) for row in session.execute(table.select()).mappings()]
        for table in _list_tables()
    }


def _replace_all(session: Session, backup: Backup) -> None:
    for table in reversed(_list_tables()):
        session.execute(table.delete())
    for table in _list_tables():
        if backup[table.name]:
            session.execute(table.insert(), list(backup[table.name]))
