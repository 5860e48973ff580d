# SPDX-License-Identifier: Apache-2.0
"""Daemon whose clock, database, messages and disk fail as a file of a test says.

``python -m tests.chaos.history.faulty_daemon`` runs the module that the environment
names. The file contains the faults of now as JSON; it is read several times a second.
"""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import errno
import importlib
import json
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psycopg
import pymysql  # type: ignore[import-untyped]  # no types
from oslo_messaging import MessageUndeliverable, MessagingException
from oslo_messaging._drivers.impl_rabbit import Connection
from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

__all__ = ['FILE', 'MODULE', 'runtime']

MODULE: Final = 'CYBORG_LITE_TEST_MODULE'
FILE: Final = 'CYBORG_LITE_TEST_FAULTS'

_PERIOD: Final = 0.1  # seconds
_LONGEST_DELAY: Final = 2.0  # seconds until a message is repeated
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
        self.read_only = 0.0  # not 0: the database refuses writes
        self.duplicates = 0.0  # share of the messages that are sent twice
        self.delay = 0.0  # seconds that a message is late at most
        self.full_disk = 0.0  # not 0: no file can be flushed
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
            if self.read_only and statement.lstrip().startswith(_WRITES):
                raise _READ_ONLY[context.dialect.name]

        sync = os.fsync

        def refuse_sync(file: Any) -> None:  # Any: a descriptor or a file
            if self.full_disk:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sync(file)

        setattr(os, 'fsync', refuse_sync)  # noqa: B010  # mypy
        setattr(time, 'time', lambda: wall_clock() + self.clock)  # noqa: B010  # mypy
        setattr(DefaultDialect, 'do_commit', refuse_commit)  # noqa: B010  # mypy
        event.listen(Engine, 'do_execute', refuse_write)
        event.listen(Engine, 'do_executemany', refuse_write)
        Messages(self).install()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        pause = threading.Event()
        while True:
            if self._path.exists():
                for name, amount in json.loads(self._path.read_text()).items():
                    setattr(self, name, amount)
            pause.wait(_PERIOD)


class Messages:
    """Delays messages of this process, and sends some again with a later one.

    A broker repeats a message if its acknowledgement is lost.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        # Time, and the arguments of the library.
        self._copies: deque[tuple[float, Any]] = deque(maxlen=100)

    def install(self) -> None:
        """Patch the driver of the message bus."""
        # Any: the library has no types.
        send: Any = Connection.topic_send

        def send_with_faults(connection: Any, **arguments: Any) -> None:
            threading.Event().wait(random.uniform(0, self._faults.delay))
            self._repeat(lambda copy: send(connection, **copy))
            send(connection, **arguments)
            if random.random() < self._faults.duplicates:
                moment = time.monotonic() + random.uniform(0, _LONGEST_DELAY)
                self._copies.append((moment, arguments))

        setattr(Connection, 'topic_send', send_with_faults)  # noqa: B010  # mypy

    def _repeat(self, send: Callable[[Any], object]) -> None:
        while self._copies and self._copies[0][0] < time.monotonic():
            # The receiver of a copy may be gone.
            with suppress(IndexError, MessagingException, MessageUndeliverable):
                send(self._copies.popleft()[1])


if __name__ == '__main__':
    Faults(Path(os.environ[FILE])).install()
    sys.exit(importlib.import_module(os.environ[MODULE]).main())
