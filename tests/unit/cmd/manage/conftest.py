# SPDX-License-Identifier: Apache-2.0
"""A fake Placement for the commands of cyborg-lite-manage."""

from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from tests.builders.reports import HOST
from tests.doubles.placement import FakePlacement


@pytest.fixture
def placement(monkeypatch: pytest.MonkeyPatch) -> FakePlacement:
    """Return the Placement of the command, with the compute node of one host."""
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    monkeypatch.setattr(Placement, 'from_config', lambda conf: placement)
    return placement
