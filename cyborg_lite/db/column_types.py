# SPDX-License-Identifier: Apache-2.0
"""Types of columns that SQLAlchemy lacks."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, TypeDecorator
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect


class UtcDateTime(TypeDecorator[datetime]):
    """A time: aware UTC in Python, naive UTC with microseconds in every database."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        """Return the column type of a database."""
        if dialect.name in ('mysql', 'mariadb'):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(DateTime())

    def process_bind_param(
        self, value: datetime | None, dialect: Dialect
    ) -> datetime | None:
        """Convert an aware time to naive UTC."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Convert naive UTC to an aware time."""
        return None if value is None else value.replace(tzinfo=UTC)
