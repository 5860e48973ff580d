# SPDX-License-Identifier: Apache-2.0
"""Dry run: no write reaches Placement, and rejections are those of Placement."""

from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import ProviderInventories
from cyborg_lite.clients.placement_rehearsal import PlacementRehearsal
from cyborg_lite.errors.providers import ProviderExists, ProviderInUse
from cyborg_lite.model.providers.providers import ProviderInventory, TreeNode
from tests.doubles.placement import FakePlacement

INVENTORY = {'PGPU': ProviderInventory(2)}


@pytest.fixture
def placement() -> FakePlacement:
    return FakePlacement()


@pytest.fixture
def root(placement: FakePlacement) -> TreeNode:
    return placement.create_provider(str(uuid4()), 'compute-1', None)


@pytest.fixture
def rehearsal(placement: FakePlacement) -> PlacementRehearsal:
    return PlacementRehearsal(placement)


def test_create_provider_is_not_stored(
    placement: FakePlacement, rehearsal: PlacementRehearsal, root: TreeNode
) -> None:
    node = rehearsal.create_provider(str(uuid4()), 'compute-1_gpu', root.uuid)
    assert (node.name, node.parent_uuid) == ('compute-1_gpu', root.uuid)
    assert placement.find_provider(node.uuid) is None


def test_create_provider_existing_name_or_uuid_raises(
    rehearsal: PlacementRehearsal, root: TreeNode
) -> None:
    with pytest.raises(ProviderExists):
        rehearsal.create_provider(str(uuid4()), root.name, None)
    with pytest.raises(ProviderExists):
        rehearsal.create_provider(root.uuid, 'new', None)


def test_writes_leave_provider_unchanged(
    placement: FakePlacement, rehearsal: PlacementRehearsal, root: TreeNode
) -> None:
    assert rehearsal.rename_provider(root, 'new').name == 'new'
    assert rehearsal.move_provider(root, 'new', 'parent').parent_uuid == 'parent'
    assert rehearsal.set_inventories(root.uuid, 0, INVENTORY).inventories == INVENTORY
    targets = {root.uuid: ProviderInventories(7, INVENTORY)}
    assert rehearsal.fill_providers(targets) == {root.uuid: 7}
    assert rehearsal.set_traits(root.uuid, 0, ['CUSTOM_A']).traits == {'CUSTOM_A'}
    rehearsal.create_custom_names(['CUSTOM_B'], ['CUSTOM_A'])
    rehearsal.delete_provider(root.uuid)
    assert placement.find_provider(root.uuid) == root
    assert not placement.get_inventories(root.uuid).inventories
    assert not placement.get_traits(root.uuid).traits


def test_delete_provider_requires_deleted_children(
    placement: FakePlacement, rehearsal: PlacementRehearsal, root: TreeNode
) -> None:
    child = placement.create_provider(str(uuid4()), 'compute-1_gpu', root.uuid)
    with pytest.raises(ProviderInUse):
        rehearsal.delete_provider(root.uuid)
    rehearsal.delete_provider(child.uuid)
    rehearsal.delete_provider(root.uuid)
