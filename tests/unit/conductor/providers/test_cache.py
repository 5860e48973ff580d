# SPDX-License-Identifier: Apache-2.0
"""Tests of the cache of resource providers."""

from dataclasses import replace
from unittest import mock

import pytest

from cyborg_lite.conductor.providers import writing
from cyborg_lite.conductor.providers.writing import ProviderCache
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    ProviderInventory,
    TreeNode,
)

NODE = TreeNode('gpu', 'compute-1_gpu', 5, 'root', 'root')
PROVIDER = ActualProvider(
    NODE, {'PGPU': ProviderInventory(1)}, frozenset({'OWNER_CYBORG'})
)


@pytest.fixture
def providers() -> ProviderCache:
    return ProviderCache()


def test_find_returns_current_name_and_parent(providers: ProviderCache) -> None:
    """A rename or a move does not change the generation."""
    providers.store(PROVIDER)
    moved = replace(NODE, name='new', parent_uuid='other')
    provider = providers.find(moved)
    assert provider is not None
    assert provider.node == moved
    assert provider.inventories == PROVIDER.inventories


def test_store_full_cache_drops_oldest_provider(providers: ProviderCache) -> None:
    nodes = [replace(NODE, uuid=f'{number}') for number in range(3)]
    with mock.patch.object(writing, '_CAPACITY', 2):
        for node in (nodes[0], nodes[1], nodes[0], nodes[2]):
            providers.store(replace(PROVIDER, node=node))
    cached = [node.uuid for node in nodes if providers.find(node)]
    assert cached == ['0', '2']


def test_find_old_entry_is_read_again() -> None:
    """The database of Placement may have been restored to the same generation."""
    seconds = iter([0.0, 3600.0, 3601.0])
    providers = ProviderCache(lambda: next(seconds))
    providers.store(PROVIDER)
    assert providers.find(NODE) == PROVIDER
    assert providers.find(NODE) is None
