# SPDX-License-Identifier: Apache-2.0
"""Tests of reading databases of Cyborg of several releases."""

from pathlib import Path

import pytest

from cyborg_lite.cyborg_import.source import read_source
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.daemons import DatabaseError
from tests.builders import cyborg_sample


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f'sqlite:///{tmp_path}/cyborg.sqlite'


def test_read_source_missing_table_is_refused(url: str) -> None:
    cyborg_sample.load(url)
    cyborg_sample.run(url, 'DROP TABLE attributes')
    with pytest.raises(InvalidInput, match='attributes'):
        read_source(url)


def test_read_source_missing_file_raises_database_error(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError):
        read_source(f'sqlite:///{tmp_path}/missing/cyborg.sqlite')
