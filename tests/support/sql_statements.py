# SPDX-License-Identifier: Apache-2.0
"""SQL statements that code sends, for tests that assert their number."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import event

from cyborg_lite.db.core.engine import Database

_WRITE = ('INSERT', 'UPDATE', 'DELETE', 'REPLACE')
_TRANSACTION = ('BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT', 'RELEASE', 'PRAGMA')


@contextlib.contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Collect the statements of all threads while the block runs.

    Each round trip is one entry; begin and end of a transaction are left out.
    """
    collected: list[str] = []

    # Any: objects of SQLAlchemy and of the database driver, which are not used.
    def record(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(_TRANSACTION):
            collected.append(statement)

    engines = database.engines
    for engine in engines:
        event.listen(engine, 'before_cursor_execute', record)
    try:
        yield collected
    finally:
        for engine in engines:
            event.remove(engine, 'before_cursor_execute', record)


def writes(collected: Sequence[str]) -> list[str]:
    """Return the statements that change rows."""
    return [text for text in collected if text.lstrip().upper().startswith(_WRITE)]


@contextlib.contextmanager
def transactions(database: Database) -> Iterator[list[str]]:
    """Collect one entry, ``commit`` or ``rollback``, for each finished transaction."""
    collected: list[str] = []
    listeners = [
        (engine, verdict, lambda _connection, word=verdict: collected.append(word))
        for engine in database.engines
        for verdict in ('commit', 'rollback')
    ]
    for listener in listeners:
        event.listen(*listener)
    try:
        yield collected
    finally:
        for listener in listeners:
            event.remove(*listener)
