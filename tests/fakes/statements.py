# SPDX-License-Identifier: Apache-2.0
"""The SQL that a piece of code sends, for tests that assert how much it is."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import event

from cyborg_lite.db.engine import Database

_WRITE = ('INSERT', 'UPDATE', 'DELETE', 'REPLACE')
_TRANSACTION = ('BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT', 'RELEASE', 'PRAGMA')


@contextlib.contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """The list fills up while the block runs, by whatever thread.

    One entry for each round trip; what only begins or ends a transaction is left out.
    """
    seen: list[str] = []

    # Any: the objects of SQLAlchemy and of the driver, of which none is looked at.
    def record(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(_TRANSACTION):
            seen.append(statement)

    engines = database.engines
    for engine in engines:
        event.listen(engine, 'before_cursor_execute', record)
    try:
        yield seen
    finally:
        for engine in engines:
            event.remove(engine, 'before_cursor_execute', record)


def writes(seen: Sequence[str]) -> list[str]:
    """Those among ``seen`` that change rows."""
    return [text for text in seen if text.lstrip().upper().startswith(_WRITE)]


@contextlib.contextmanager
def transactions(database: Database) -> Iterator[list[str]]:
    """One entry, the verdict, for each transaction that ends meanwhile."""
    seen: list[str] = []
    listeners = [
        (engine, verdict, lambda _connection, word=verdict: seen.append(word))
        for engine in database.engines
        for verdict in ('commit', 'rollback')
    ]
    for listener in listeners:
        event.listen(*listener)
    try:
        yield seen
    finally:
        for listener in listeners:
            event.remove(*listener)
