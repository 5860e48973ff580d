# SPDX-License-Identifier: Apache-2.0
"""Databases and a broker of our own for each test of this folder."""

from collections.abc import Iterator

import pytest

from tests.fakes.databases import fresh_database
from tests.fakes.rabbitmq import virtual_host


@pytest.fixture(scope='session')
def broker() -> Iterator[str]:
    """A transport URL."""
    with virtual_host() as url:
        yield url


@pytest.fixture(params=['mariadb', 'postgresql'])
def connection(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of an empty database."""
    yield from fresh_database(request.param)
