# SPDX-License-Identifier: Apache-2.0
"""Reads a database of OpenStack Cyborg.

The tables are reflected, because their columns differ between releases.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final, TypeVar

from oslo_db.sqlalchemy import engines
from sqlalchemy import Connection, MetaData, Table, select
from sqlalchemy.exc import InvalidRequestError

from cyborg_lite.cyborg_import.source_rows import (
    SourceArq,
    SourceAttribute,
    SourceControlPath,
    SourceDatabase,
    SourceDeployable,
    SourceDevice,
    SourceHandle,
    SourceProfile,
)
from cyborg_lite.db.core import dialects, failures
from cyborg_lite.errors.base import InvalidInput

Row = TypeVar('Row')

_VERSION_TABLE: Final = 'alembic_version'
_TABLES: Final = (
    'device_profiles',
    'devices',
    'controlpath_ids',
    'deployables',
    'attach_handles',
    'attributes',
    'extended_accelerator_requests',
)


def read_source(connection: str) -> SourceDatabase:
    """Read all rows of a database of Cyborg, in one transaction that changes nothing.

    :param connection: URL of the database
    :raises InvalidInput: the database is not that of Cyborg
    :raises ServiceUnavailable: the database does not answer
    """
    with _connect(connection) as connected:
        reader = _Reader(connected)
        return SourceDatabase(
            revision=reader.read_revision(),
            profiles=reader.read('device_profiles', SourceProfile),
            devices=reader.read('devices', SourceDevice),
            control_paths=reader.read('controlpath_ids', SourceControlPath),
            deployables=reader.read('deployables', SourceDeployable),
            handles=reader.read('attach_handles', SourceHandle),
            attributes=reader.read('attributes', SourceAttribute),
            arqs=reader.read('extended_accelerator_requests', SourceArq),
        )


@contextlib.contextmanager
def _connect(connection: str) -> Iterator[Connection]:
    url = dialects.validate_url(connection, 'The option --from')
    engine = engines.create_engine(
        url.render_as_string(hide_password=False), max_retries=0
    )
    try:
        with engine.connect() as connected:
            yield connected
    except failures.DATABASE_ERRORS as error:
        raise failures.translate_error(error) from error
    finally:
        engine.dispose()


class _Reader:
    """Reads the tables as they are in the database."""

    def __init__(self, connection: Connection) -> None:
        """Reflect the tables.

        :raises InvalidInput: a table is missing
        """
        self._connection = connection
        metadata = MetaData()
        try:
            metadata.reflect(
                connection, only=[*_TABLES, _VERSION_TABLE], resolve_fks=False
            )
        except InvalidRequestError as error:
            reason = f'The database is not that of Cyborg: {error}.'
            raise InvalidInput(reason=reason) from None
        self._tables = metadata.tables

    def read_revision(self) -> str:
        """Return the revision of the schema; empty: it is not recorded."""
        statement = select(self._tables[_VERSION_TABLE].c.version_num)
        return self._connection.execute(statement).scalar() or ''

    def read(self, name: str, kind: type[Row]) -> tuple[Row, ...]:
        """Return the rows of a table, by id, as instances of a class.

        :param kind: a dataclass whose fields are columns; None in a column that the
            table lacks
        """
        table = self._tables[name]
        # Any: `fields` does not accept a type variable.
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        columns = [table.c[column] for column in names if column in table.c]
        rows = self._connection.execute(select(*columns).order_by(table.c.id))
        return tuple(self._build(kind, names, table, row) for row in rows.mappings())

    def _build(self, kind: type[Row], names: list[str], table: Table, row: Any) -> Row:
        values = {name: row[name] if name in table.c else None for name in names}
        return kind(**values)
