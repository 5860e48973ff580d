# SPDX-License-Identifier: Apache-2.0
"""The clock of the database, which all conductors share."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, DateTime, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.expression import FunctionElement


class _NowMs(FunctionElement[int]):
    type = BigInteger()
    inherit_cache = True


def now_ms() -> ColumnElement[int]:
    """Return SQL for the milliseconds since the epoch, constant within a statement."""
    return _NowMs()


def read_now_ms(session: Session) -> int:
    """Return the current time in milliseconds since the epoch."""
    return session.execute(select(now_ms())).scalar_one()


class _NowUtc(FunctionElement[datetime]):
    type = DateTime()
    inherit_cache = True


def now_utc() -> ColumnElement[datetime]:
    """Return SQL for the current time in the format of DATETIME columns."""
    return _NowUtc()


def read_time_before(session: Session, seconds: float) -> datetime:
    """Return the time ``seconds`` before now."""
    current: datetime = session.execute(select(now_utc())).scalar_one()
    return current.replace(tzinfo=UTC) - timedelta(seconds=seconds)


# SQLAlchemy passes its compiler, which has no type annotations.
@compiles(_NowMs, 'sqlite')
def _sqlite(element: _NowMs, compiler: Any, **_: Any) -> str:
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"


# UNIX_TIMESTAMP() reads local time, which is ambiguous for an hour in autumn.
@compiles(_NowMs, 'mysql')
@compiles(_NowMs, 'mariadb')
def _mysql(element: _NowMs, compiler: Any, **_: Any) -> str:
    return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"


# now() would be the start of the transaction, which may have waited since then.
@compiles(_NowMs, 'postgresql')
def _postgresql(element: _NowMs, compiler: Any, **_: Any) -> str:
    return 'CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)'


# SQLite stores times as text, and SQLAlchemy writes six digits of a second.
@compiles(_NowUtc, 'sqlite')
def _sqlite_utc(element: _NowUtc, compiler: Any, **_: Any) -> str:
    return "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"


@compiles(_NowUtc, 'mysql')
@compiles(_NowUtc, 'mariadb')
def _mysql_utc(element: _NowUtc, compiler: Any, **_: Any) -> str:
    return 'UTC_TIMESTAMP(6)'


@compiles(_NowUtc, 'postgresql')
def _postgresql_utc(element: _NowUtc, compiler: Any, **_: Any) -> str:
    return "(statement_timestamp() AT TIME ZONE 'UTC')"
