# SPDX-License-Identifier: Apache-2.0
"""Classifies and translates errors of the database."""

import re
import traceback
from pathlib import Path
from typing import Final

from oslo_db import exception as db
from oslo_log import log
from sqlalchemy import exc

from cyborg_lite.errors.base import CyborgError, InvalidInput
from cyborg_lite.errors.daemons import (
    DatabaseError,
    DatabaseRefused,
    ServiceUnavailable,
)

LOG = log.getLogger(__name__)

_PACKAGE: Final = 'cyborg_lite'

DATABASE_ERRORS: Final = (db.DBError, db.DBInvalidUnicodeParameter, exc.SQLAlchemyError)

# PostgreSQL; oslo.db does not translate these.
_SERIALIZATION_FAILURE: Final = '40001'
_READ_ONLY: Final = '25006'  # a standby, or a primary during a failover

_BAD_VALUE: Final = (db.DBDataError, db.DBInvalidUnicodeParameter)
_UNAVAILABLE: Final = (
    db.DBConnectionError,
    db.DBDeadlock,  # after all retries
    exc.TimeoutError,  # no connection of the pool became free
)
# MySQL: too many connections, access denied, shutdown, read-only and similar. The other
# server error numbers concern statements. Numbers of the client library start at 2000.
_MYSQL_UNAVAILABLE: Final = frozenset(
    {1040, 1044, 1045, 1047, 1053, 1129, 1130, 1152, 1158, 1159, 1160, 1161}
    | {1203, 1205, 1213, 1226, 1290, 1836, 1927}
    # A full disk or table, and a statement that was killed or took too long.
    | {1021, 1114, 1317, 1969}
)
_MYSQL_CLIENT: Final = 2000

_MISSING_SCHEMA: Final = (db.DBNonExistentDatabase, db.DBNonExistentTable)

# MySQL: the user, the password or the name of the database is wrong.
_MYSQL_REFUSED: Final = frozenset({1044, 1045, 1049, 1698})
# PostgreSQL: psycopg has no error code for a connection that the server refuses.
_POSTGRESQL_REFUSED: Final = re.compile(
    r'FATAL: .*(authentication failed|does not exist|permission denied|pg_hba)'
)


def is_conflict(error: Exception) -> bool:
    """Check for a conflict with another transaction, after which a retry may succeed.

    These are a serialization failure, and a row that was deleted or referenced since it
    was read. oslo.db itself retries after a deadlock.
    """
    if isinstance(error, db.DBReferenceError):
        return True
    return _sqlstate(error) == _SERIALIZATION_FAILURE


def is_connection_error(error: Exception) -> bool:
    """Check whether the server is unreachable, starting, read-only or overloaded."""
    if _sqlstate(error) == _READ_ONLY:
        return True
    if isinstance(error, exc.OperationalError):
        return not _is_of_statement(error)
    return isinstance(error, db.DBConnectionError)


def is_refused(error: Exception) -> bool:
    """Check whether the server refuses the user, the password or the database name."""
    original = getattr(error, 'inner_exception', None) or error
    cause = getattr(original, 'orig', None)
    if not isinstance(original, exc.OperationalError) or cause is None:
        return False
    number = cause.args[0] if cause.args else None
    return number in _MYSQL_REFUSED or bool(_POSTGRESQL_REFUSED.search(str(cause)))


def _sqlstate(error: Exception) -> str | None:
    """Return the error code of PostgreSQL; None: the error has none."""
    error = getattr(error, 'inner_exception', None) or error
    return getattr(getattr(error, 'orig', None), 'sqlstate', None)


def _is_of_statement(error: exc.OperationalError) -> bool:
    """Check whether the error concerns the statement, such as an unknown column.

    SQLite and MySQL raise the same class for these errors.
    """
    sqlite_name = getattr(error.orig, 'sqlite_errorname', None)
    if sqlite_name is not None:
        return bool(sqlite_name == 'SQLITE_ERROR')
    number = error.orig.args[0] if error.orig and error.orig.args else None
    return (
        isinstance(number, int)
        and number < _MYSQL_CLIENT
        and number not in _MYSQL_UNAVAILABLE
    )


def translate_error(error: Exception) -> CyborgError:
    """Return the exception for callers; log the text of the original error."""
    original = getattr(error, 'inner_exception', None) or error
    # Without the statement and its parameters.
    text = str(getattr(original, 'orig', original))
    if isinstance(error, _BAD_VALUE) or isinstance(original, exc.DataError):
        LOG.warning('The database rejected a value: %s', _describe(error))
        return InvalidInput(reason='A value is too long, or cannot be stored as text.')
    if is_refused(error):
        LOG.error('The database refuses the connection: %s', text)
        return DatabaseRefused()
    if isinstance(error, _UNAVAILABLE) or is_connection_error(error):
        LOG.error('The database does not answer: %s', text)
        return ServiceUnavailable(what='the database')
    if isinstance(error, _MISSING_SCHEMA):
        LOG.error('Tables are missing. Run cyborg-lite-dbsync upgrade: %s', text)
    else:
        LOG.error('The database rejected a statement: %s', _describe(error))
    return DatabaseError()


def _describe(error: Exception) -> str:
    """Return the class, the code and the place of an error.

    The text of a driver may contain the statement and values of tenants.
    """
    original = getattr(error, 'inner_exception', None) or error
    cause = getattr(original, 'orig', None) or original
    codes = (
        getattr(cause, 'sqlstate', None),
        getattr(cause, 'sqlite_errorname', None),
        *(item for item in cause.args[:1] if isinstance(item, int)),
    )
    code = next((str(code) for code in codes if code), 'no code')
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _PACKAGE in Path(frame.filename).parts]
    places = [f'line {frame.lineno} of {Path(frame.filename).name}' for frame in own]
    return f'{type(cause).__name__}, {code}, {places[-1] if places else "no place"}'
