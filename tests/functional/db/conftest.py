# SPDX-License-Identifier: Apache-2.0
"""Fixtures of empty databases on SQLite, MariaDB and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.databases import database_fixture, fresh_database

database = database_fixture('sqlite', 'mariadb', 'postgresql')
server = database_fixture('mariadb', 'postgresql')


@pytest.fixture(params=['sqlite', 'mariadb', 'postgresql'])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a database without tables."""
    yield from _empty_database(request.param, tmp_path / 'empty.sqlite')


@pytest.fixture
def second_empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of another database of the same kind without tables."""
    kind = request.node.callspec.params['empty_url']
    yield from _empty_database(kind, tmp_path / 'second.sqlite')


def _empty_database(kind: str, file: Path) -> Iterator[str]:
    if kind == 'sqlite':
        yield f'sqlite:///{file}'
    else:
        yield from fresh_database(kind)
