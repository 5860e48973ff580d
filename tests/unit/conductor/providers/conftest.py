# SPDX-License-Identifier: Apache-2.0
"""Fixtures of a Placement with one compute node, and of the syncs of its host."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.providers.providers import TreeNode
from tests.doubles.placement import FakePlacement


@pytest.fixture
def placement() -> FakePlacement:
    """Return a Placement with the provider of a compute node."""
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), 'compute-1', None)
    placement.calls.clear()
    return placement


@pytest.fixture
def root(placement: FakePlacement) -> TreeNode:
    """Return the provider of the compute node."""
    (root,) = placement.providers.values()
    return root.node


@pytest.fixture
def sync(database: Database, placement: FakePlacement) -> PlacementSync:
    return PlacementSync(database, placement)
