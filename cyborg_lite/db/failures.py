# SPDX-License-Identifier: Apache-2.0
"""What an error of the database means: try again, somebody is away, or a bug."""

from typing import Final

from oslo_db import exception as db
from oslo_log import log
from sqlalchemy import exc

from cyborg_lite.exceptions import (
    CyborgError,
    DatabaseError,
    InvalidInput,
    ServiceUnavailable,
)

LOG = log.getLogger(__name__)

ANY: Final = (db.DBError, db.DBInvalidUnicodeParameter, exc.SQLAlchemyError)

_SERIALIZATION_FAILURE: Final = '40001'  # PostgreSQL; oslo.db does not know it

_BAD_VALUE: Final = (db.DBDataError, db.DBInvalidUnicodeParameter)
_AWAY: Final = (
    db.DBConnectionError,
    db.DBDeadlock,  # still, after all attempts
    exc.TimeoutError,  # of the pool
)
# Of MySQL: too many connections, access denied, shutting down, read-only, and the like.
# The other numbers below those of the client library are about statements.
_MYSQL_AWAY: Final = frozenset(
    {1040, 1044, 1045, 1047, 1053, 1129, 1130, 1152, 1158, 1159, 1160, 1161}
    | {1203, 1205, 1213, 1226, 1290, 1836, 1927}
)
_MYSQL_CLIENT: Final = 2000

_NOT_SET_UP: Final = (db.DBNonExistentDatabase, db.DBNonExistentTable)


def is_conflict(error: Exception) -> bool:
    """Another transaction won. oslo.db tries again by itself after a deadlock."""
    of_server = getattr(error, 'orig', None)
    return getattr(of_server, 'sqlstate', None) == _SERIALIZATION_FAILURE


def is_of_connection(error: Exception) -> bool:
    """The server went away, is not up yet, or has no room for us now."""
    if isinstance(error, exc.OperationalError):
        return not _is_of_statement(error)
    return isinstance(error, db.DBConnectionError)


def _is_of_statement(error: exc.OperationalError) -> bool:
    """SQLite and MySQL say by the same class that a column is unknown."""
    of_sqlite = getattr(error.orig, 'sqlite_errorname', None)
    if of_sqlite is not None:
        return bool(of_sqlite == 'SQLITE_ERROR')
    number = error.orig.args[0] if error.orig and error.orig.args else None
    return (
        isinstance(number, int) and number < _MYSQL_CLIENT and number not in _MYSQL_AWAY
    )


def translated(error: Exception) -> CyborgError:
    """The error that may leave this package. The text of the original stays here."""
    original = getattr(error, 'inner_exception', None) or error
    words = getattr(original, 'orig', original)  # without statement and parameters
    if isinstance(error, _BAD_VALUE) or isinstance(original, exc.DataError):
        LOG.warning('The database refused a value: %s', words)
        return InvalidInput(reason='A value is too long, or not storable as text.')
    if isinstance(error, _AWAY) or is_of_connection(error):
        LOG.error('The database does not answer: %s', words)
        return ServiceUnavailable(what='the database')
    if isinstance(error, _NOT_SET_UP):
        LOG.error('Run cyborg-lite-dbsync upgrade first: %s', words)
    else:
        LOG.error('The database refused a statement.', exc_info=error)
    return DatabaseError()
