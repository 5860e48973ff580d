# SPDX-License-Identifier: Apache-2.0
"""Translation of the errors of each database driver."""

import sqlite3

import pymysql.err  # type: ignore[import-untyped]  # no types
import pytest
from oslo_db import exception as db
from psycopg import errors as psycopg
from sqlalchemy import exc

from cyborg_lite.db.core import failures
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.daemons import (
    DatabaseError,
    DatabaseRefused,
    ServiceUnavailable,
)


class _Sqlite(sqlite3.OperationalError):
    """Error of SQLite with a chosen name; SQLite sets the name itself."""

    def __init__(self, name: str) -> None:
        super().__init__('message')
        self.sqlite_errorname = name


def wrap_error(error: Exception) -> exc.OperationalError:
    return exc.OperationalError('SELECT secret', {'key': 'secret'}, error)


@pytest.mark.parametrize(
    'error',
    [
        wrap_error(_Sqlite('SQLITE_BUSY')),
        wrap_error(_Sqlite('SQLITE_IOERR')),
        wrap_error(pymysql.err.OperationalError(2003, 'message')),
        wrap_error(pymysql.err.OperationalError(1040, 'message')),
        wrap_error(pymysql.err.OperationalError(1290, 'message')),
        wrap_error(pymysql.err.OperationalError(1021, 'disk full')),
        wrap_error(pymysql.err.OperationalError(1114, 'table is full')),
        wrap_error(pymysql.err.OperationalError(1317, 'interrupted')),
        wrap_error(pymysql.err.OperationalError(1969, 'max_statement_time')),
        wrap_error(psycopg.AdminShutdown('message')),
        wrap_error(psycopg.OperationalError('connection refused')),
        db.DBError(
            exc.InternalError('UPDATE', {}, psycopg.ReadOnlySqlTransaction('message'))
        ),
        db.DBConnectionError(),
    ],
)
def test_translate_error_connection_error_is_service_unavailable(
    error: Exception,
) -> None:
    assert failures.is_connection_error(error)
    assert isinstance(failures.translate_error(error), ServiceUnavailable)


@pytest.mark.parametrize(
    'error',
    [
        wrap_error(_Sqlite('SQLITE_ERROR')),
        wrap_error(pymysql.err.OperationalError(1054, 'unknown column')),
        wrap_error(pymysql.err.OperationalError(1364, 'no default')),
        db.DBNonExistentTable('t', None),
        db.DBNonExistentDatabase('d', None),
    ],
)
def test_translate_error_wrong_statement_is_database_error(error: Exception) -> None:
    assert not failures.is_connection_error(error)
    assert not failures.is_conflict(error)
    assert type(failures.translate_error(error)) is DatabaseError


@pytest.mark.parametrize(
    'error',
    [
        wrap_error(pymysql.err.OperationalError(1045, 'Access denied for user')),
        wrap_error(pymysql.err.OperationalError(1698, 'Access denied for user')),
        wrap_error(pymysql.err.OperationalError(1049, 'Unknown database')),
        wrap_error(
            psycopg.OperationalError(
                'connection failed: FATAL:  password authentication failed for user "x"'
            )
        ),
        wrap_error(
            psycopg.OperationalError('FATAL:  database "cyborg" does not exist')
        ),
    ],
)
def test_translate_error_refused_connection_has_advice(error: Exception) -> None:
    assert isinstance(failures.translate_error(error), DatabaseRefused)


@pytest.mark.parametrize(
    'error',
    [
        db.DBDataError(),
        db.DBInvalidUnicodeParameter(),
        db.DBError(exc.DataError('INSERT', {}, Exception('message'))),
    ],
)
def test_translate_error_unsuitable_value_is_invalid_input(error: Exception) -> None:
    assert isinstance(failures.translate_error(error), InvalidInput)


def test_is_conflict_serialization_failure_is_true() -> None:
    assert failures.is_conflict(wrap_error(psycopg.SerializationFailure('message')))
    # A concurrent transaction deleted the row, or inserted a reference to it.
    assert failures.is_conflict(db.DBReferenceError('t', 'c', 'k', 'kt'))
    assert not failures.is_conflict(wrap_error(psycopg.AdminShutdown('message')))


def test_translate_error_logs_driver_message_without_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures.translate_error(wrap_error(pymysql.err.OperationalError(2003, 'no route')))
    assert 'no route' in caplog.text
    assert 'secret' not in caplog.text
