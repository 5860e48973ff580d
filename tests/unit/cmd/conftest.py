# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the commands: an SQLite database and a configuration file for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.db.core.engine import Database
from tests.servers.databases import database_fixture

database = database_fixture('sqlite')


@pytest.fixture
def write_config(tmp_path: Path, database: Database) -> Callable[..., list[str]]:
    """Return a function that writes a configuration file with the database.

    The function takes further lines of the file, and returns the options that name it.
    """

    def write(lines: str = '') -> list[str]:
        file = tmp_path / 'cyborg-lite.conf'
        connection = f'sqlite:///{tmp_path}/cyborg_lite.sqlite'
        file.write_text(f'[database]\nconnection = {connection}\n{lines}')
        return ['--config-file', str(file)]

    return write
