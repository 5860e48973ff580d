# SPDX-License-Identifier: Apache-2.0
"""Daemon whose wall clock and database fail as a file of a test says.

``python -m tests.chaos.history.faulty_daemon`` runs the module that the environment
names. The file contains the faults of now as JSON; it is read several times a second.
"""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import importlib
import json
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import psycopg
import pymysql  # type: ignore[import-untyped]  # no types
from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

__all__ = ['FILE', 'MODULE', 'runtime']

MODULE: Final = 'CYBORG_LITE_TEST_MODULE'
FILE: Final = 'CYBORG_LITE_TEST_FAULTS'

_PERIOD: Final = 0.1  # seconds
_WRITES: Final = ('INSERT', 'UPDATE', 'DELETE')

_DEADLOCKS: Final = {
    'mysql': pymysql.err.OperationalError(1213, 'Deadlock found; try restarting'),
    'postgresql': psycopg.errors.SerializationFailure('could not serialize access'),
}
_READ_ONLY: Final = {
    'mysql': pymysql.err.OperationalError(
        1290, 'The MariaDB server is running with the --read-only option'
    ),
    'postgresql': psycopg.errors.ReadOnlySqlTransaction(
        'cannot execute UPDATE in a read-only transaction'
    ),
}


class Faults:
    """Faults of this process, renewed from a file by a thread."""

    def __init__(self, path: Path) -> None:
        self.clock = 0.0  # seconds added to the wall clock
        self.refusals = 0.0  # share of the commits that the database refuses
        self.is_read_only = False
        self._path = path

    def install(self) -> None:
        """Patch the clock and the database drivers of this process."""
        wall_clock = time.time
        # Any: SQLAlchemy has no types for it.
        commit: Any = DefaultDialect.do_commit

        # Any: a connection of the database driver.
        def refuse_commit(dialect: DefaultDialect, connection: Any) -> None:
            if random.random() < self.refusals:
                connection.rollback()
                raise _DEADLOCKS[dialect.name]
            commit(dialect, connection)

        # Any: arguments of SQLAlchemy.
        def refuse_write(
            _cursor: Any, statement: str, _parameters: Any, context: Any
        ) -> None:
            if self.is_read_only and statement.lstrip().startswith(_WRITES):
                raise _READ_ONLY[context.dialect.name]

        setattr(time, 'time', lambda: wall_clock() + self.clock)  # noqa: B010  # mypy
        setattr(DefaultDialect, 'do_commit', refuse_commit)  # noqa: B010  # mypy
        event.listen(Engine, 'do_execute', refuse_write)
        event.listen(Engine, 'do_executemany', refuse_write)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        pause = threading.Event()
        while True:
            if self._path.exists():
                values = json.loads(self._path.read_text())
                self.clock = values.get('clock', 0.0)
                self.refusals = values.get('refusals', 0.0)
                self.is_read_only = values.get('is_read_only', False)
            pause.wait(_PERIOD)


if __name__ == '__main__':
    Faults(Path(os.environ[FILE])).install()
    sys.exit(importlib.import_module(os.environ[MODULE]).main())
