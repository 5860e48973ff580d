# SPDX-License-Identifier: Apache-2.0
"""Transactions: their connections, and when they are retried."""

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

_RECONNECT_TIMEOUT: Final = 1.5  # seconds; then the caller gets ServiceUnavailable


class Database:
    """The database of this process.

    Create it once, after fork. The first transaction opens connections. Any number of
    threads may use it. Transactions must not be nested.
    """

    def __init__(
        self,
        connection: str,
        *,
        max_pool_size: int = 16,
        **options: Any,  # of various types
    ) -> None:
        """Check the URL and store the options.

        :param max_pool_size: connections that stay open; at most twice as many are used
            at once, unless the options contain ``max_overflow``
        :param options: other options of the section ``[database]`` of oslo.db
        :raises ConfigurationError: ``connection`` is not a URL of a supported database
        """
        self._url = dialects.validate_url(connection)
        self._pool = {
            'max_pool_size': max_pool_size,
            'max_overflow': options.pop('max_overflow', max_pool_size),
            'pool_timeout': options.pop('pool_timeout', 5),
        }
        self._options = options
        self._lock = threading.Lock()
        self._facade: Any = None  # None: not started; oslo.db has no types
        self._keeper: Connection | None = None  # SQLite only

    def write(
        self,
        work: Callable[Concatenate[Session, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run ``work`` in one write transaction and return its result.

        After a deadlock or a failed certification ``work`` runs again, so it must have
        no effects outside the session.

        :raises ServiceUnavailable: the database does not answer
        :raises InvalidInput: a value does not fit its column
        :raises DatabaseError: any other error of the database
        """
        return self._run('writer', lambda session: work(session, *args, **kwargs))

    def read(
        self,
        work: Callable[Concatenate[Session, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run ``work`` in one read transaction and return its result; see ``write``."""
        return self._run('reader', lambda session: work(session, *args, **kwargs))

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The engine of the writers, and that of the readers if it differs."""
        facade = self._start()
        engines = (facade.writer.get_engine(), facade.reader.get_engine())
        return tuple(dict.fromkeys(engines))

    def close(self) -> None:
        """Close all idle connections. Another transaction would open new ones."""
        with self._lock:
            facade, self._facade = self._facade, None
            keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()
        if facade is not None:
            facade.dispose_pool()

    def _run(self, side: str, work: Callable[[Session], T]) -> T:
        deadline = time.monotonic() + _RECONNECT_TIMEOUT
        committing = False

        def is_retryable(error: Exception) -> bool:
            # A connection that is lost during the commit may have committed.
            lost = failures.is_connection_error(error) and not committing
            return (lost and time.monotonic() < deadline) or failures.is_conflict(error)

        def attempt() -> T:
            nonlocal committing
            committing = False
            with getattr(self._start(), side).using(SimpleNamespace()) as session:
                result = work(session)
                session.flush()
                committing = True
            return result

        try:
            return cast(T, _retry_if(is_retryable)(attempt)())
        except failures.DATABASE_ERRORS as error:
            raise failures.translate_error(error) from error

    def _start(self) -> Any:
        with self._lock:
            if self._facade is None:
                facade = self._new_facade()
                if self._url.get_backend_name() == 'sqlite':
                    writer = facade.writer.get_engine()
                    self._keeper = dialects.open_keeper(writer)
                    event.listen(writer, 'begin', dialects.begin_immediately)
                self._facade = facade
            return self._facade

    def _new_facade(self) -> Any:
        facade = enginefacade.transaction_context()
        url = self._url.render_as_string(hide_password=False)
        is_sqlite = self._url.get_backend_name() == 'sqlite'
        facade.configure(
            # SQLite has no pool, and oslo.db rejects unused options.
            **({} if is_sqlite else self._pool),
            **self._options,
            connection=url,
            # Readers of SQLite must not take the lock of the writers, so they use a
            # second engine. On the other databases there is none, because a lagging
            # replica would not show ARQs that have just been bound.
            slave_connection=url if is_sqlite else None,
            synchronous_reader=not is_sqlite,
            sqlite_fk=True,
            max_retries=0,  # no test connection at the start
        )
        facade.append_on_engine_create(dialects.configure_connections)
        return facade


def _retry_if(is_retryable: Callable[[Exception], bool]) -> Any:
    """Return a decorator that retries. The default pause of 1 s is too long."""
    return oslo_db_api.wrap_db_retry(
        max_retries=5,
        retry_on_deadlock=True,
        retry_interval=0.05,
        inc_retry_interval=True,
        max_retry_interval=1,
        exception_checker=is_retryable,
    )
