# SPDX-License-Identifier: Apache-2.0
"""Databases for tests: a file, or one of our own on a real server.

In the ``conftest.py`` of a folder of tests::

    from tests.fakes.databases import database_fixture

    database = database_fixture('sqlite', 'mariadb', 'postgresql')

Each test that asks for ``database`` then runs once for each of those, and gets a
``Database`` with the whole schema and no rows. Unit tests name ``sqlite`` alone.

Servers are those of CYBORG_LITE_TEST_MARIADB and CYBORG_LITE_TEST_POSTGRESQL, URLs
without a database. A test whose server does not answer is skipped, but fails where
CYBORG_LITE_TEST_REQUIRE_SERVERS is 1. On a server each process of a test run makes a
database of its own, empties it between tests, and drops it at the end.
"""

import functools
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Base

REQUIRED: Final = 'CYBORG_LITE_TEST_REQUIRE_SERVERS'

_SERVERS: Final = {
    'mariadb': ('CYBORG_LITE_TEST_MARIADB', 'mysql+pymysql://root@127.0.0.1/'),
    'postgresql': (
        'CYBORG_LITE_TEST_POSTGRESQL',
        'postgresql+psycopg://root@127.0.0.1/',
    ),
}
# What `root` connects to while there is no database of the test yet.
_LOBBY: Final = {'mariadb': None, 'postgresql': 'postgres'}


def database_fixture(*kinds: str) -> Callable[..., Iterator[Database]]:
    """A fixture named after the variable it is assigned to; see above."""

    @pytest.fixture(params=kinds)
    def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
        opened = Database(_address(request, tmp_path))
        try:
            yield opened
        finally:
            opened.close()

    return database


def _address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database with the schema and no rows."""
    kind = request.param
    if kind == 'sqlite':
        url = f'sqlite:///{tmp_path}/cyborg_lite.sqlite'
        _make_schema(url)
        return url
    url = _of_this_run(kind, request.config)
    _empty(url)
    return url


@functools.cache
def _of_this_run(kind: str, config: pytest.Config) -> str:
    """The database of this process on a server, made at the first call."""
    made = fresh_database(kind)
    url = next(made)
    config.add_cleanup(functools.partial(_exhaust, made))
    _make_schema(url)
    return url


def _exhaust(made: Iterator[str]) -> None:
    next(made, None)


def fresh_database(kind: str) -> Iterator[str]:
    """Make an empty database; its URL; drop it. A generator, for fixtures.

    Skips or fails the test if the server does not answer.
    """
    server = _lobby(kind)
    name = f'cyborg_lite_test_{os.getpid()}_{uuid.uuid4().hex[:8]}'
    # Not UTF-8 on purpose: the tables must not depend on what an operator chose.
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


def _make_schema(url: str) -> None:
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    engine.dispose()


def _empty(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            # Rows that point at others of their own table would be in each other's way.
            for column in table.columns:
                if any(key.column.table is table for key in column.foreign_keys):
                    connection.execute(table.update().values({column: None}))
            connection.execute(table.delete())
    engine.dispose()
