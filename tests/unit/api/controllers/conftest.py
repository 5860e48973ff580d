# SPDX-License-Identifier: Apache-2.0
"""Accelerator requests that a conversation begins with."""

import pytest

from tests.unit.api.controllers.patches import bind
from tests.unit.api.conversation import NOVA, Client


@pytest.fixture
def nova(client: Client) -> Client:
    """A user's request that comes through Nova, and a profile for it."""
    client.profile('dp1', {'resources:FPGA': '1'}, {'resources:GPU': '2'})
    return client.as_(NOVA)


@pytest.fixture
def bound(nova: Client) -> list[str]:
    """The uuids of the requests of ``INSTANCE``."""
    uuids = [arq['uuid'] for arq in nova.arqs()]
    assert (
        nova.patch('/accelerator_requests', dict.fromkeys(uuids, bind())).status == 202
    )
    return uuids
