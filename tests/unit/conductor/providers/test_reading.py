# SPDX-License-Identifier: Apache-2.0
"""Tests of the reading of a host: the tree, its rows and the state of providers."""

import pytest

from cyborg_lite.conductor.providers.reading import HostReader
from cyborg_lite.conductor.providers.writing import ProviderCache, SyncProgress
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.providers import PlacementConflict
from tests.builders.provider_rows import add_device
from tests.doubles.placement import FakePlacement
from tests.support.sql_statements import statements

HOST = 'compute-1'


@pytest.fixture
def placement() -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider('root', HOST, None)
    return placement


@pytest.fixture
def progress() -> SyncProgress:
    return SyncProgress()


@pytest.fixture
def reader(
    database: Database, placement: FakePlacement, progress: SyncProgress
) -> HostReader:
    return HostReader(placement, ProviderCache(), database, progress)


def test_read_facts_newer_generation_restarts_attempt(
    database: Database, placement: FakePlacement, reader: HostReader
) -> None:
    """The rows are older than the generation, so a write could undo a newer sync."""
    gpu = add_device(database, HOST, 'gpu')
    placement.create_provider(gpu, f'{HOST}_gpu', 'root')
    tree = reader.read_tree(HOST, has_compute=True, deep=False)
    assert tree is not None
    placement.providers[gpu].touch()
    with pytest.raises(PlacementConflict):
        reader.read_facts(tree, has_compute=True, prune=False)
    placement.calls.clear()
    second = reader.read_tree(HOST, has_compute=True, deep=False)
    assert second is not None
    with statements(database) as executed:
        facts = reader.read_facts(second, has_compute=True, prune=False)
    assert facts.actual[gpu].node == placement.providers[gpu].node
    assert len(placement.calls) == 2  # root and tree; the cache has the provider
    assert executed == []
