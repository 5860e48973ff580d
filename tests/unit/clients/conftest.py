# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of clients: an HTTP service with given answers."""

from collections.abc import Iterator

import pytest

from tests.doubles.http_service import HttpService


@pytest.fixture
def service() -> Iterator[HttpService]:
    with HttpService() as service:
        yield service
