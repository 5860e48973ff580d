# SPDX-License-Identifier: Apache-2.0
"""Databases and a broker for each test of this folder."""

from collections.abc import Iterator

import pytest

from tests.servers.databases import fresh_database
from tests.servers.rabbitmq import virtual_host


@pytest.fixture(scope='session')
def broker() -> Iterator[str]:
    """Return a transport URL."""
    with virtual_host() as url:
        yield url


@pytest.fixture(params=['mariadb', 'postgresql'])
def connection(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of an empty database."""
    yield from fresh_database(request.param)
