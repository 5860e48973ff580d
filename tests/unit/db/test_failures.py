# SPDX-License-Identifier: Apache-2.0
"""What an error of each driver means."""

import sqlite3

import pymysql.err  # type: ignore[import-untyped]  # it has no types
import pytest
from oslo_db import exception as db
from psycopg import errors as psycopg
from sqlalchemy import exc

from cyborg_lite.db import failures
from cyborg_lite.exceptions import DatabaseError, InvalidInput, ServiceUnavailable


class _Sqlite(sqlite3.OperationalError):
    """The names are given by the library itself; here they are ours to choose."""

    def __init__(self, name: str) -> None:
        super().__init__('words')
        self.sqlite_errorname = name


def _wrapped(error: Exception) -> exc.OperationalError:
    return exc.OperationalError('SELECT secret', {'key': 'secret'}, error)


@pytest.mark.parametrize(
    'error',
    [
        _wrapped(_Sqlite('SQLITE_BUSY')),
        _wrapped(_Sqlite('SQLITE_IOERR')),
        _wrapped(pymysql.err.OperationalError(2003, 'words')),
        _wrapped(pymysql.err.OperationalError(1040, 'words')),
        _wrapped(pymysql.err.OperationalError(1290, 'words')),
        _wrapped(psycopg.AdminShutdown('words')),
        _wrapped(psycopg.OperationalError('connection refused')),
        db.DBConnectionError(),
    ],
)
def test_a_server_that_is_away_may_be_back_in_a_moment(error: Exception) -> None:
    assert failures.is_of_connection(error)
    assert isinstance(failures.translated(error), ServiceUnavailable)


@pytest.mark.parametrize(
    'error',
    [
        _wrapped(_Sqlite('SQLITE_ERROR')),
        _wrapped(pymysql.err.OperationalError(1054, 'unknown column')),
        _wrapped(pymysql.err.OperationalError(1364, 'no default')),
        db.DBNonExistentTable('t', None),
        db.DBNonExistentDatabase('d', None),
        db.DBReferenceError('t', 'c', 'k', 'kt'),
    ],
)
def test_a_statement_at_fault_is_not_tried_again(error: Exception) -> None:
    assert not failures.is_of_connection(error)
    assert not failures.is_conflict(error)
    assert type(failures.translated(error)) is DatabaseError


@pytest.mark.parametrize(
    'error',
    [
        db.DBDataError(),
        db.DBInvalidUnicodeParameter(),
        db.DBError(exc.DataError('INSERT', {}, Exception('words'))),
    ],
)
def test_a_value_that_does_not_fit_is_the_fault_of_the_caller(error: Exception) -> None:
    assert isinstance(failures.translated(error), InvalidInput)


def test_a_failed_serialization_is_a_conflict() -> None:
    assert failures.is_conflict(_wrapped(psycopg.SerializationFailure('words')))
    assert not failures.is_conflict(_wrapped(psycopg.AdminShutdown('words')))


def test_the_log_has_the_words_of_the_driver_and_no_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures.translated(_wrapped(pymysql.err.OperationalError(2003, 'no route')))
    assert 'no route' in caplog.text
    assert 'secret' not in caplog.text
