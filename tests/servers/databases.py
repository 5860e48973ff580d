# SPDX-License-Identifier: Apache-2.0
"""Databases for tests: a SQLite file, or a new database on a real server.

In the ``conftest.py`` of a folder of tests::

    from tests.servers.databases import database_fixture

    database = database_fixture('sqlite', 'mariadb', 'postgresql')

A test with the fixture ``database`` runs once for each of these and gets a
``Database`` with the whole schema and no rows. Unit tests use ``sqlite`` only.

CYBORG_LITE_TEST_MARIADB and CYBORG_LITE_TEST_POSTGRESQL are URLs of the servers,
without a database. A test whose server does not answer is skipped, but fails if
CYBORG_LITE_TEST_REQUIRE_SERVERS is 1. Each process of a test run creates one
database per server, empties it between tests and drops it at the end.
"""

import functools
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from sqlalchemy import (
    URL,
    CompoundSelect,
    Engine,
    create_engine,
    event,
    exists,
    literal,
    make_url,
    select,
    text,
    union_all,
)
from sqlalchemy.exc import OperationalError

from cyborg_lite.db.core import migration
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Base

REQUIRED: Final = 'CYBORG_LITE_TEST_REQUIRE_SERVERS'

_SERVERS: Final = {
    'mariadb': ('CYBORG_LITE_TEST_MARIADB', 'mysql+pymysql://root@127.0.0.1/'),
    'postgresql': (
        'CYBORG_LITE_TEST_POSTGRESQL',
        'postgresql+psycopg://root@127.0.0.1/',
    ),
}
# database to which `root` connects before the database of the test exists
_LOBBY: Final = {'mariadb': None, 'postgresql': 'postgres'}


def database_fixture(*kinds: str) -> Callable[..., Iterator[Database]]:
    """Return a fixture with the name of the variable that it is assigned to."""

    @pytest.fixture(params=kinds)
    def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
        kind = request.param
        if kind != 'sqlite':
            opened = _process_database(kind, request.config)
            _empty(opened)
            yield opened
            return
        file = ReusedEngines(create_sqlite_file(tmp_path / 'cyborg_lite.sqlite'))
        try:
            yield file
        finally:
            file.close()

    return database


def find_url(database: Database) -> str:
    """Return the URL of a database, with its password."""
    if isinstance(database, ReusedEngines):
        return database.url
    return database.engines[0].url.render_as_string(hide_password=False)


class ReusedEngines(Database):
    """An SQLite database with the engines of an earlier one of this process.

    An engine keeps the statements that it has compiled. Most tests send statements of
    earlier tests, and to compile them again costs more than to execute them.
    """

    _idle: ClassVar[list['_Engines']] = []

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url
        self._engines: _Engines | None = None  # None: no transaction yet

    # Any: oslo.db has no types.
    def _new_facade(self) -> Any:
        engines = self._idle.pop() if self._idle else _Engines(super()._new_facade())
        engines.path = make_url(self.url).database or ''
        self._engines = engines
        return engines.facade

    def close(self) -> None:
        """Close all connections. The next database may have the engines."""
        super().close()
        engines, self._engines = self._engines, None
        if engines is not None:
            self._idle.append(engines)


class _Engines:
    """The writer and the reader of one SQLite file after the other."""

    # Any: oslo.db has no types.
    def __init__(self, facade: Any) -> None:
        self.facade = facade
        self.path = ''
        for side in (facade.writer, facade.reader):
            event.listen(side.get_engine(), 'do_connect', self._select_file)

    # Any: the arguments depend on the library of the database.
    def _select_file(
        self, _dialect: Any, _record: Any, arguments: list[Any], _options: Any
    ) -> None:
        arguments[0] = self.path


def create_sqlite_file(path: Path) -> str:
    """Create an SQLite file with the schema and no rows, and return its URL."""
    path.write_bytes(_sqlite_schema())
    return f'sqlite:///{path}'


@functools.cache
def _sqlite_schema() -> bytes:
    """Return the content of an SQLite file with the schema of the newest revision.

    Many tests need such a file, and a copy costs a thousandth of the migrations.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / 'schema.sqlite'
        migration.upgrade(f'sqlite:///{file}')
        return file.read_bytes()


@functools.cache
def _process_database(kind: str, config: pytest.Config) -> Database:
    """Return the database of this process on a server; the first call creates it.

    Its connections stay open between tests, because a server needs longer to open one
    than to execute the statements of most tests.
    """
    databases = fresh_database(kind)
    url = next(databases)
    config.add_cleanup(functools.partial(next, databases, None))
    database = Database(url)
    config.add_cleanup(database.close)
    Base.metadata.create_all(database.engines[0])
    return database


def fresh_database(kind: str) -> Iterator[str]:
    """Create an empty database, yield its URL, and drop it.

    It skips or fails the test if the server does not answer.
    """
    server = _lobby(kind)
    name = f'cyborg_lite_test_{os.getpid()}_{uuid.uuid4().hex[:8]}'
    # Not UTF-8, because the tables must not depend on the operator's choice.
    charset = ' CHARACTER SET latin1' if kind == 'mariadb' else ''
    force = ' WITH (FORCE)' if kind == 'postgresql' else ''
    with server.connect() as connection:
        connection.execute(text(f'CREATE DATABASE {name}{charset}'))
    yield server.url.set(database=name).render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.execute(text(f'DROP DATABASE {name}{force}'))
    server.dispose()


def _lobby(kind: str) -> Engine:
    variable, default = _SERVERS[kind]
    url: URL = make_url(os.environ.get(variable, default))
    engine = create_engine(
        url.set(database=url.database or _LOBBY[kind]),
        isolation_level='AUTOCOMMIT',
        connect_args={'connect_timeout': 3},
    )
    try:
        engine.connect().close()
    except OperationalError as error:
        message = f'{kind} does not answer at {url!r}: {error.orig}'
        if os.environ.get(REQUIRED) == '1':
            pytest.fail(message)
        pytest.skip(message)
    return engine


def _empty(database: Database) -> None:
    """Delete all rows; most tables have none."""
    with database.engines[0].begin() as connection:
        used = set(connection.scalars(_used_tables()))
        for table in reversed(Base.metadata.sorted_tables):
            if table.name not in used:
                continue
            # Rows that refer to rows of their own table cannot be deleted at once.
            for column in table.columns:
                if any(key.column.table is table for key in column.foreign_keys):
                    connection.execute(table.update().values({column: None}))
            connection.execute(table.delete())


@functools.cache
def _used_tables() -> CompoundSelect[tuple[str]]:
    """Return the query of the names of the tables that have rows."""
    return union_all(
        *(
            select(literal(table.name)).where(exists().select_from(table))
            for table in Base.metadata.sorted_tables
        )
    )
