# SPDX-License-Identifier: Apache-2.0
"""What each kind of database must be told before it behaves as we need."""

from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError

from cyborg_lite.exceptions import ConfigurationError

# Seconds. A server that does not answer must cost a caller a moment, not a minute;
# and what a dead peer never answers must not hold a worker for ever.
_CONNECT_TIMEOUT: Final = '3'
_ANSWER_TIMEOUT: Final = '30'
_LOCK_TIMEOUT: Final = '10'

_DRIVERS: Final = {
    'sqlite': 'sqlite',
    # The library's other name for the same server; oslo.db knows its errors by the
    # name `mysql` only.
    'mariadb': 'mysql+pymysql',
    'mysql': 'mysql+pymysql',
    'postgresql': 'postgresql+psycopg',
}

_QUERY: Final[dict[str, dict[str, str]]] = {
    'sqlite': {'timeout': _LOCK_TIMEOUT},
    'mysql': {
        # oslo.db's own choice, `utf8`, has no room for characters beyond the BMP.
        'charset': 'utf8mb4',
        'connect_timeout': _CONNECT_TIMEOUT,
        'read_timeout': _ANSWER_TIMEOUT,
        'write_timeout': _ANSWER_TIMEOUT,
    },
    'postgresql': {
        'connect_timeout': _CONNECT_TIMEOUT,
        'keepalives_idle': '10',
        'keepalives_interval': '5',
        'keepalives_count': '3',
        'tcp_user_timeout': f'{_ANSWER_TIMEOUT}000',
    },
}

# They wait for the server in C, where no other green thread can run meanwhile.
_BLOCK_EVENTLET: Final = frozenset({'mysqldb', 'mariadbconnector', 'psycopg'})


def vetted(connection: str) -> URL:
    """The address with the driver and the options that we need, kept if given.

    :raises ConfigurationError: no address of a database that we can use
    """
    try:
        url = make_url(connection)
    except (ArgumentError, ValueError):
        # The library's text may hold the password.
        reason = '[database] connection is no database URL.'
        raise ConfigurationError(reason=reason) from None
    dialect, _, driver = url.drivername.partition('+')
    if dialect not in _DRIVERS:
        reason = f'[database] connection: {dialect} is none of {", ".join(_DRIVERS)}.'
        raise ConfigurationError(reason=reason)
    if dialect == 'sqlite' and url.database in (None, '', ':memory:'):
        reason = '[database] connection: SQLite needs a file.'
        raise ConfigurationError(reason=reason)
    known = _DRIVERS[dialect]
    url = url.set(drivername=f'{known.partition("+")[0]}+{driver}' if driver else known)
    defaults = _QUERY[url.get_backend_name()]
    return url.update_query_dict({**defaults, **url.query})


def refuse_blocking_driver(connection: str, backend: str) -> None:
    """For entry points, with the backend that ``runtime`` chose.

    :raises ConfigurationError: the driver would stop all green threads of eventlet
    """
    driver = vetted(connection).get_driver_name()
    if backend == 'eventlet' and driver in _BLOCK_EVENTLET:
        reason = (
            f'[database] connection: the driver {driver} blocks the whole process '
            'under eventlet; use mysql+pymysql or postgresql+psycopg2.'
        )
        raise ConfigurationError(reason=reason)


def prepare(engine: Engine) -> None:
    """What every new connection is told. Called before the first one is made."""
    if engine.dialect.name == 'mysql':
        event.listen(engine, 'connect', _tell_mysql)
    if engine.dialect.name == 'sqlite':
        event.listen(engine, 'connect', _tell_sqlite)


def begin_immediately(connection: Connection) -> None:
    """SQLite: take the write lock at once.

    A transaction that reads first and wants to write afterwards fails as soon as
    another one wrote meanwhile, and no timeout helps. oslo.db has sent its own BEGIN
    when this is called.
    """
    if connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]  # sqlite3's
        connection.exec_driver_sql('ROLLBACK')
    connection.exec_driver_sql('BEGIN IMMEDIATE')


def keep_open(engine: Engine) -> Connection:
    """SQLite: a connection that is never used, and has to be kept.

    Without it each close is the last one: it folds the write-ahead log, at five times
    the cost of all else.
    """
    kept = engine.connect()
    # A connection takes part in the log from the first time that it reads.
    with kept.begin():
        kept.exec_driver_sql('SELECT 1 FROM sqlite_master').fetchall()
    return kept


# Any: the connections of the drivers, which have no common type.
def _tell_mysql(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        # The default keeps a snapshot and locks gaps: more deadlocks, older data.
        cursor.execute('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
        cursor.execute(f'SET SESSION innodb_lock_wait_timeout = {_LOCK_TIMEOUT}')


def _tell_sqlite(connection: Any, _record: Any) -> None:
    connection.execute('PRAGMA journal_mode = WAL')
    connection.execute('PRAGMA synchronous = NORMAL')
