# SPDX-License-Identifier: Apache-2.0
"""Tests of the application of operations, and of the cache of providers."""

from dataclasses import replace
from typing import Final
from unittest import mock

import pytest

from cyborg_lite.conductor.providers import writing
from cyborg_lite.conductor.providers.writing import (
    ProviderCache,
    ProviderWriter,
    RehearsalWriter,
    SyncProgress,
)
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.providers.changes import (
    Closure,
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    Operation,
    SetInventories,
    SetTraits,
)
from cyborg_lite.model.providers.providers import ActualProvider, ProviderInventory
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.doubles.placement import FakePlacement

GPU: Final = 'uuid-of-the-gpu'
SECOND: Final = 'uuid-of-the-second'
NAME: Final = 'compute-1_gpu'
TRAITS: Final = frozenset({OWNER_CYBORG, 'CUSTOM_NVIDIA_1EB8'})
INVENTORY: Final = {'PGPU': ProviderInventory(4, max_unit=4)}
CLOSED: Final = {'PGPU': ProviderInventory(4, reserved=4, max_unit=4)}
CLOSURE: Final = Closure(CLOSED, 'the device is removed, but allocated')


@pytest.fixture
def placement() -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider('root', 'compute-1', None)
    return placement


@pytest.fixture
def progress() -> SyncProgress:
    return SyncProgress()


@pytest.fixture
def cache() -> ProviderCache:
    return ProviderCache()


@pytest.fixture
def writer(
    placement: FakePlacement, cache: ProviderCache, progress: SyncProgress
) -> ProviderWriter:
    """Return a writer for a tree without providers of this service."""
    return ProviderWriter(placement, cache, progress, {})


@pytest.fixture
def gpu(placement: FakePlacement) -> ActualProvider:
    """Return a provider as read from Placement."""
    placement.create_provider(GPU, NAME, 'root')
    provider = placement.providers[GPU]
    provider.inventories, provider.traits = INVENTORY, TRAITS
    placement.calls.clear()
    return ActualProvider(provider.node, INVENTORY, TRAITS)


@pytest.fixture
def updater(
    placement: FakePlacement,
    cache: ProviderCache,
    progress: SyncProgress,
    gpu: ActualProvider,
) -> ProviderWriter:
    """Return a writer for a tree with the provider."""
    return ProviderWriter(placement, cache, progress, {GPU: gpu})


def creations(uuid: str = GPU, name: str = NAME) -> list[Operation]:
    return [
        CreateProvider(uuid, name, 'root'),
        SetTraits(uuid, TRAITS),
        SetInventories(uuid, INVENTORY),
    ]


def reasons(writer: ProviderWriter) -> list[str]:
    return [problem.reason for problem in writer.problems]


# --- create ---------------------------------------------------------------------------


def test_apply_refused_reshape_fills_each_provider(
    placement: FakePlacement, writer: ProviderWriter
) -> None:
    placement.refuses_reshape = True
    writer.apply([*creations(), *creations(SECOND, 'compute-1_2')])
    assert placement.providers[GPU].inventories == INVENTORY
    assert placement.providers[SECOND].inventories == INVENTORY


def test_apply_creation_in_other_tree_is_noted(
    placement: FakePlacement, progress: SyncProgress, writer: ProviderWriter
) -> None:
    placement.create_provider('elsewhere', 'compute-9', None)
    placement.create_provider(GPU, NAME, 'elsewhere')
    writer.apply(creations())
    assert (progress.outside, writer.problems) == ({GPU}, [])


@pytest.mark.parametrize('parent', ['root', None])
def test_apply_creation_by_another_client_restarts(
    placement: FakePlacement, writer: ProviderWriter, parent: str | None
) -> None:
    """Another client creates the same provider, or a root with the same name."""
    placement.create_provider('of-nova' if parent is None else GPU, NAME, parent)
    with pytest.raises(PlacementConflict):
        writer.apply([CreateProvider(GPU, NAME, parent)])


# --- update ---------------------------------------------------------------------------


def test_apply_rename_taken_meanwhile_is_problem(
    placement: FakePlacement, updater: ProviderWriter
) -> None:
    """The other operations of the provider do not need the name."""
    placement.create_provider('namesake', 'compute-1_new', 'root')
    updater.apply(
        [MoveProvider(GPU, 'compute-1_new', 'root'), SetTraits(GPU, frozenset())]
    )
    assert reasons(updater) == ['provider namesake has its name']
    assert placement.providers[GPU].traits == frozenset()


# --- removal --------------------------------------------------------------------------


def test_apply_deletion_waits_for_children(
    placement: FakePlacement, updater: ProviderWriter
) -> None:
    updater.apply([DeleteProvider(GPU, CLOSURE, frozenset({'child'}))])
    assert placement.providers[GPU].inventories == INVENTORY
    assert (placement.calls, updater.problems) == ([], [])


# --- rehearsal ------------------------------------------------------------------------


def test_rehearsal_predicts_every_operation_without_writing(
    placement: FakePlacement, cache: ProviderCache, gpu: ActualProvider
) -> None:
    """The two writers report the same changes and problems."""
    placement.create_provider('used', 'compute-1_used', 'root')
    placement.providers['used'].inventories = INVENTORY
    placement.allocate('used', {'PGPU': 1})
    placement.create_provider('parent', 'compute-1_parent', 'root')
    placement.create_provider('child', 'compute-1_child', 'parent')
    placement.create_provider('namesake', 'compute-1_taken', None)
    actual = {
        uuid: ActualProvider(state.node, state.inventories, state.traits)
        for uuid, state in placement.providers.items()
    }
    operations = [
        DeleteProvider(GPU, CLOSURE),
        *creations(SECOND, NAME),  # the deletion frees the name
        *creations('third', 'compute-1_taken'),
        DeleteProvider('used', CLOSURE),
        DeleteProvider('parent', CLOSURE),
        MoveProvider('child', 'compute-1_moved', 'root'),
        SetInventories('child', INVENTORY),
    ]
    expected = SyncProgress()
    rehearsal = RehearsalWriter(placement, ProviderCache(), expected, actual)
    placement.calls.clear()
    rehearsal.apply(operations)
    assert placement.writes == []
    progress = SyncProgress()
    writer = ProviderWriter(placement, cache, progress, actual)
    writer.apply(operations)
    assert progress == expected
    assert writer.problems == rehearsal.problems
    assert len(writer.problems) == 3


# --- cache ----------------------------------------------------------------------------


def test_find_returns_current_name_and_parent(
    cache: ProviderCache, gpu: ActualProvider
) -> None:
    """A rename or a move does not change the generation."""
    cache.store(gpu)
    moved = replace(gpu.node, name='new', parent_uuid='other')
    assert cache.find(moved) == replace(gpu, node=moved)


def test_store_full_cache_drops_oldest_provider(
    cache: ProviderCache, gpu: ActualProvider
) -> None:
    nodes = [replace(gpu.node, uuid=f'{number}') for number in range(3)]
    with mock.patch.object(writing, '_CAPACITY', 2):
        for node in (nodes[0], nodes[1], nodes[0], nodes[2]):
            cache.store(replace(gpu, node=node))
    cached = [node.uuid for node in nodes if cache.find(node)]
    assert cached == ['0', '2']


def test_find_old_entry_is_read_again(gpu: ActualProvider) -> None:
    """The database of Placement may have been restored to the same generation."""
    seconds = iter([0.0, 3600.0, 3601.0])
    cache = ProviderCache(lambda: next(seconds))
    cache.store(gpu)
    assert cache.find(gpu.node) == gpu
    assert cache.find(gpu.node) is None
