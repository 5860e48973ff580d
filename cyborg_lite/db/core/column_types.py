# SPDX-License-Identifier: Apache-2.0
"""Types of columns that SQLAlchemy lacks, and settings of all tables."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import BigInteger, DateTime, Integer, TypeDecorator
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect

from cyborg_lite import codec
from cyborg_lite.model.inventory.typed_attributes import AttributeType, TypedAttribute

# Explicit names, so that a later revision can drop a constraint of an earlier one.
CONSTRAINT_NAMES: Final = {
    'ix': 'ix_%(column_0_label)s',
    'uq': 'uq_%(table_name)s_%(column_0_N_name)s',
    'fk': 'fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s',
    'pk': 'pk_%(table_name)s',
}

# Independent of the defaults of the database: all of Unicode, and comparisons that are
# case-sensitive, as on PostgreSQL and SQLite.
MYSQL_OPTIONS: Final = {
    'mysql_engine': 'InnoDB',
    'mysql_charset': 'utf8mb4',
    'mysql_collate': 'utf8mb4_bin',
}

# Ids of tables that grow with each bind. SQLite generates ids only for columns of type
# INTEGER, which have 64 bits there.
BIG: Final = BigInteger().with_variant(Integer, 'sqlite')


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


# Any: JSON that a conductor of any release has written.
def read_attributes(
    stored: Iterable[Mapping[str, Any]] | None,
) -> tuple[TypedAttribute, ...]:
    """Return the typed attributes of a column.

    An attribute whose type this release does not know is left out.

    :param stored: None: no attributes
    :raises MalformedData: an attribute is malformed
    """
    types = {kind.value for kind in AttributeType}
    readable = [data for data in stored or () if data.get('type') in types]
    return codec.load(tuple[TypedAttribute, ...], readable)
