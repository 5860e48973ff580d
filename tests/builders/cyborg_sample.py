# SPDX-License-Identifier: Apache-2.0
"""A database of OpenStack Cyborg, and the cloud around it.

``cyborg_databases/database.sql`` is the dump of a real database of release 2026.2 with
2 hosts, 9 device profiles and 8 ARQs of 4 running servers. ``cloud.json`` has the
providers, allocations and servers at the same moment. The other files are the empty
schemas of earlier releases.
"""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, create_engine, text

FOLDER: Final = Path(__file__).with_name('cyborg_databases')
NEWEST: Final = 'database.sql'
EARLIER: Final = ('schema-6c77bd6afea5.sql', 'schema-4cc1d79978fc.sql')
HOST: Final = 'vm'
PROVIDER: Final = '823f5e9e-ef5b-3461-bd09-8006cc3755d1'
BOUND: Final = 6  # ARQs
_INSERT_COLUMNS: Final = re.compile(r'^INSERT INTO `(\w+)` VALUES\s*', re.MULTILINE)


@functools.cache
def read_cloud() -> dict[str, Any]:
    """Return what Placement, Nova and the REST API of Cyborg returned. Any: JSON."""
    result: dict[str, Any] = json.loads((FOLDER / 'cloud.json').read_text())
    return result


def load(url: str, file: str = NEWEST) -> None:
    """Run a dump in an empty database of SQLite or MariaDB."""
    engine = create_engine(url)
    with engine.begin() as connection:
        is_sqlite = engine.dialect.name == 'sqlite'
        for statement in _list_statements(file, is_sqlite=is_sqlite):
            connection.exec_driver_sql(statement.replace('%', '%%'))
    engine.dispose()


def run(url: str, *statements: str) -> None:
    """Run statements, as an operator would change the database of Cyborg."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def read(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a SELECT. Any: values of columns."""
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = _read(connection, statement)
    engine.dispose()
    return rows


def _read(connection: Connection, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(text(statement))]


def _list_statements(file: str, *, is_sqlite: bool) -> Iterator[str]:
    dump = (FOLDER / file).read_text(encoding='utf-8')
    dump = re.sub(r'^/\*.*?\*/ ?;?$', '', dump, flags=re.MULTILINE)
    for part in re.split(r';\n', dump):
        statement = part.strip()
        if statement.startswith('SET ') and is_sqlite:
            continue
        if statement:
            yield _convert(statement) if is_sqlite else statement


def _convert(statement: str) -> str:
    """Return a statement of MariaDB in the syntax of SQLite."""
    if _INSERT_COLUMNS.match(statement):
        return statement.replace('\\"', '"').replace("\\'", "''")
    lines = [
        line
        for line in statement.splitlines()
        if not re.match(r'\s*(?:UNIQUE )?KEY |\s*CONSTRAINT ', line)
    ]
    converted = '\n'.join(lines)
    for pattern, replacement in (
        (r' AUTO_INCREMENT(?!=)', ''),
        (r'\) ENGINE=.*', ')'),
        (r'enum\([^)]*\)', 'varchar(32)'),
        (r'int\(\d+\)', 'integer'),
        (r'tinyinteger', 'integer'),
        (r',\s*\)$', '\n)'),
    ):
        converted = re.sub(pattern, replacement, converted)
    return converted
