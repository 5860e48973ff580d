# SPDX-License-Identifier: Apache-2.0
"""Connection settings of each kind of database."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError

from cyborg_lite.errors.daemons import ConfigurationError

# Seconds. A server that does not answer must not delay a caller for a minute, nor block
# a worker for ever.
_CONNECT_TIMEOUT: Final = '3'
_ANSWER_TIMEOUT: Final = '30'
_LOCK_TIMEOUT: Final = '10'

_DRIVERS: Final = {
    'sqlite': 'sqlite',
    # SQLAlchemy has two names for this server. oslo.db translates its errors only under
    # the name `mysql`.
    'mariadb': 'mysql+pymysql',
    'mysql': 'mysql+pymysql',
    'postgresql': 'postgresql+psycopg',
}

_DATETIME: Final = 12  # `FIELD_TYPE.DATETIME` of PyMySQL, which is not always loaded

_QUERY: Final[dict[str, dict[str, str]]] = {
    'sqlite': {'timeout': _LOCK_TIMEOUT},
    'mysql': {
        # The default of oslo.db, `utf8`, cannot store characters beyond the BMP.
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

# These drivers wait for the server in C code, which blocks all green threads.
_BLOCK_EVENTLET: Final = frozenset({'mysqldb', 'mariadbconnector', 'psycopg'})


def validate_url(connection: str, option: str = '[database] connection') -> URL:
    """Return the URL with default driver and options, unless the URL contains others.

    :param option: name of the option in errors
    :raises ConfigurationError: the text is not the URL of a supported database
    """
    try:
        url = make_url(connection)
    except (ArgumentError, ValueError):
        # The error text of SQLAlchemy may contain the password.
        reason = f'{option} is not a database URL.'
        raise ConfigurationError(reason=reason) from None
    dialect, _, driver = url.drivername.partition('+')
    if dialect not in _DRIVERS:
        reason = f'{option}: {dialect} is none of {", ".join(_DRIVERS)}.'
        raise ConfigurationError(reason=reason)
    if dialect == 'sqlite' and url.database in (None, '', ':memory:'):
        reason = f'{option}: SQLite needs a file.'
        raise ConfigurationError(reason=reason)
    default = _DRIVERS[dialect]
    name = f'{default.partition("+")[0]}+{driver}' if driver else default
    url = url.set(drivername=name)
    defaults = _QUERY[url.get_backend_name()]
    return url.update_query_dict({**defaults, **url.query})


def refuse_blocking_driver(connection: str, backend: str) -> None:
    """Check that the database driver works with the backend of the process.

    :raises ConfigurationError: the driver would stop all green threads of eventlet
    """
    driver = validate_url(connection).get_driver_name()
    if backend == 'eventlet' and driver in _BLOCK_EVENTLET:
        reason = (
            f'[database] connection: the driver {driver} blocks the whole process '
            'under eventlet; use mysql+pymysql or postgresql+psycopg2.'
        )
        raise ConfigurationError(reason=reason)


def configure_connections(engine: Engine) -> None:
    """Configure each new connection; call this before the first one is opened."""
    # The text of an error, and so the log, has no values of tenants.
    engine.hide_parameters = True
    if engine.dialect.name == 'mysql':
        event.listen(engine, 'connect', _configure_mysql)
    if engine.driver == 'pymysql':
        event.listen(engine, 'connect', _read_times_in_c)
    if engine.dialect.name == 'sqlite':
        event.listen(engine, 'connect', _configure_sqlite)


def begin_immediately(connection: Connection) -> None:
    """Begin a transaction of SQLite with its write lock.

    A transaction that first reads and then writes fails without waiting if another one
    has written meanwhile. oslo.db has sent a BEGIN before this is called.
    """
    if connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]  # sqlite3's
        connection.exec_driver_sql('ROLLBACK')
    connection.exec_driver_sql('BEGIN IMMEDIATE')


def open_keeper(engine: Engine) -> Connection:
    """Open a connection to SQLite that stays open and unused.

    With no connection left open, SQLite checkpoints the WAL at every close, at five
    times the cost of the rest.
    """
    keeper = engine.connect()
    # A connection uses the WAL only after it has read for the first time.
    with keeper.begin():
        keeper.exec_driver_sql('SELECT 1 FROM sqlite_master').fetchall()
    return keeper


# Any: the connection classes of the drivers have no common type.
def _configure_mysql(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        # The default isolation level reads a snapshot and locks gaps, which returns old
        # data and causes deadlocks.
        cursor.execute('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
        cursor.execute(f'SET SESSION innodb_lock_wait_timeout = {_LOCK_TIMEOUT}')


def _read_times_in_c(connection: Any, _record: Any) -> None:
    """Replace a regular expression, which takes a sixth of the time of a list."""
    connection.decoders[_DATETIME] = datetime.fromisoformat


def _configure_sqlite(connection: Any, _record: Any) -> None:
    connection.execute('PRAGMA journal_mode = WAL')
    connection.execute('PRAGMA synchronous = NORMAL')
