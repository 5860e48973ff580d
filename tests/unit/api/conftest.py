# SPDX-License-Identifier: Apache-2.0
"""The service that the conversations are with."""

import pytest

from tests.unit.api.conversation import Client


@pytest.fixture
def client() -> Client:
    """An administrator, at the default microversion."""
    return Client()
