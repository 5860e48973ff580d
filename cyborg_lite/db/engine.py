# SPDX-License-Identifier: Apache-2.0
"""Transactions: how they begin on each database, and when they are tried again."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from oslo_db import api as oslo_db_api
from oslo_db.sqlalchemy import enginefacade
from sqlalchemy import Connection, Engine, event
from sqlalchemy.orm import Session

from cyborg_lite.db import dialects, failures

P = ParamSpec('P')
T = TypeVar('T')

_CONNECTION_PATIENCE: Final = 1.5  # seconds; then the caller hears that it is away


class Database:
    """The database of this process. Made once, after fork; opens nothing until used.

    May be used by any number of threads. A transaction belongs to the thread that
    began it, and none may be begun inside another.
    """

    def __init__(
        self,
        connection: str,
        *,
        max_pool_size: int = 16,
        **options: Any,  # each has a type of its own
    ) -> None:
        """:param max_pool_size: connections kept open; no more than twice that at once,
            unless ``max_overflow`` is among the options
        :param options: others of oslo.db, by their names in its ``[database]`` section
        :raises ConfigurationError: the address is not one of a database we can use
        """
        self._url = dialects.vetted(connection)
        self._pool = {
            'max_pool_size': max_pool_size,
            'max_overflow': options.pop('max_overflow', max_pool_size),
            'pool_timeout': options.pop('pool_timeout', 5),
        }
        self._options = options
        self._lock = threading.Lock()
        self._facade: Any = None  # None: not started; oslo.db is untyped
        self._keeper: Connection | None = None  # SQLite's alone

    def write(
        self,
        work: Callable[Concatenate[Session, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run ``work`` in one write transaction and return what it returns.

        It is run again, whole, when the database asks for that (deadlock, failed
        certification), so it must have no effect but on the session.

        :raises ServiceUnavailable: the database does not answer
        :raises InvalidInput: a value does not fit its column
        :raises DatabaseError: any other complaint of the database
        """
        return self._run('writer', lambda session: work(session, *args, **kwargs))

    def read(
        self,
        work: Callable[Concatenate[Session, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As ``write``, in a transaction that only reads."""
        return self._run('reader', lambda session: work(session, *args, **kwargs))

    @property
    def engines(self) -> tuple[Engine, ...]:
        """That of the writers, then that of the readers if it is another one."""
        facade = self._started()
        engines = (facade.writer.get_engine(), facade.reader.get_engine())
        return tuple(dict.fromkeys(engines))

    def close(self) -> None:
        """Close all idle connections. The next transaction would open new ones."""
        with self._lock:
            facade, self._facade = self._facade, None
            keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()
        if facade is not None:
            facade.dispose_pool()

    def _run(self, side: str, work: Callable[[Session], T]) -> T:
        deadline = time.monotonic() + _CONNECTION_PATIENCE
        committing = False

        def worth_another(error: Exception) -> bool:
            # A connection that is lost while it commits may well have committed.
            lost = failures.is_of_connection(error) and not committing
            return (lost and time.monotonic() < deadline) or failures.is_conflict(error)

        def attempt() -> T:
            nonlocal committing
            committing = False
            with getattr(self._started(), side).using(SimpleNamespace()) as session:
                result = work(session)
                session.flush()
                committing = True
            return result

        try:
            return cast(T, _persistently(worth_another)(attempt)())
        except failures.ANY as error:
            raise failures.translated(error) from error

    def _started(self) -> Any:
        with self._lock:
            if self._facade is None:
                facade = self._new_facade()
                if self._url.get_backend_name() == 'sqlite':
                    writer = facade.writer.get_engine()
                    self._keeper = dialects.keep_open(writer)
                    event.listen(writer, 'begin', dialects.begin_immediately)
                self._facade = facade
            return self._facade

    def _new_facade(self) -> Any:
        facade = enginefacade.transaction_context()
        address = self._url.render_as_string(hide_password=False)
        of_sqlite = self._url.get_backend_name() == 'sqlite'
        facade.configure(
            # SQLite has no pool, and the library refuses what it cannot use.
            **({} if of_sqlite else self._pool),
            **self._options,
            connection=address,
            # Readers of SQLite must not take the lock of the writers, so they have an
            # engine of their own. Elsewhere a replica that lags would show an instance
            # without the requests that were just bound to it.
            slave_connection=address if of_sqlite else None,
            synchronous_reader=not of_sqlite,
            sqlite_fk=True,
            max_retries=0,  # no test connection at start: the first use tells
        )
        facade.append_on_engine_create(dialects.prepare)
        return facade


def _persistently(worth_another: Callable[[Exception], bool]) -> Any:
    """The library's 1 s between attempts would be far too long for a short lock."""
    return oslo_db_api.wrap_db_retry(
        max_retries=5,
        retry_on_deadlock=True,
        retry_interval=0.05,
        inc_retry_interval=True,
        max_retry_interval=1,
        exception_checker=worth_another,
    )
