# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the commands."""

import pytest

from tests.support.api.conversation import Client


@pytest.fixture
def client() -> Client:
    """Return a client with the admin persona; commands choose the microversion."""
    return Client()
