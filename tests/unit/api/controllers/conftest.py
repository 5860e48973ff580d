# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the controller tests: a client of Nova, and bound ARQs."""

import pytest

from cyborg_lite.api.microversion import MAXIMUM
from tests.support.api.conversation import NOVA, Client
from tests.support.api.patches import build_bind


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client with the newest microversion."""
    return client.at(str(MAXIMUM))


@pytest.fixture
def nova(client: Client) -> Client:
    """Return the client of Nova on behalf of a user, with a device profile."""
    client.create_profile('dp1', {'resources:FPGA': '1'}, {'resources:GPU': '2'})
    return client.as_(NOVA)


@pytest.fixture
def bound(nova: Client) -> list[str]:
    """Return the uuids of the bound ARQs of ``INSTANCE``."""
    uuids = [arq['uuid'] for arq in nova.create_arqs()]
    assert (
        nova.patch('/accelerator_requests', dict.fromkeys(uuids, build_bind())).status
        == 202
    )
    return uuids
