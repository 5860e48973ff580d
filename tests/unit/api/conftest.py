# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the API tests."""

import pytest

from tests.support.api.conversation import Client


@pytest.fixture
def client() -> Client:
    """Return a client with the admin persona and the default microversion."""
    return Client()
