# SPDX-License-Identifier: Apache-2.0
"""Fixtures of empty SQLite databases."""

from pathlib import Path

import pytest

from tests.servers.databases import database_fixture

database = database_fixture('sqlite')


@pytest.fixture
def empty_url(tmp_path: Path) -> str:
    """Return the URL of a database without tables."""
    return f'sqlite:///{tmp_path}/empty.sqlite'


@pytest.fixture
def second_empty_url(tmp_path: Path) -> str:
    """Return the URL of another database without tables."""
    return f'sqlite:///{tmp_path}/second.sqlite'
