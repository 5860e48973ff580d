# SPDX-License-Identifier: Apache-2.0
"""The unit tests of ``unit_tests.txt`` once more, on MariaDB and on PostgreSQL.

They are collected as part of this folder, so the fixtures of this file replace those of
the unit tests. ``-k test_binding`` selects a module.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.databases import database_fixture, fresh_database

_UNIT_TESTS = Path(__file__).parents[2] / 'unit'

database = database_fixture('mariadb', 'postgresql')


class UnitTests(pytest.File):
    """List of modules of unit tests."""

    def collect(self) -> Iterator[pytest.Module]:
        for line in self.path.read_text().splitlines():
            yield pytest.Module.from_parent(self, path=_UNIT_TESTS / line)


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    if file_path.name != 'unit_tests.txt':
        return None
    return UnitTests.from_parent(parent, path=file_path)


@pytest.fixture(params=['mariadb', 'postgresql'])
def empty_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the URL of a database without tables."""
    yield from fresh_database(request.param)
