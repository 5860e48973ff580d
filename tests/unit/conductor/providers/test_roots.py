# SPDX-License-Identifier: Apache-2.0
"""Root providers of hosts without a compute node."""

from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.conductor.providers.sync import PlacementSync, SyncMode, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.providers.providers import ProviderInventory
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.builders.provider_rows import add_device, remove_devices
from tests.doubles.placement import FakePlacement


@pytest.fixture
def placement() -> FakePlacement:
    return FakePlacement()


@pytest.fixture
def edge_sync(database: Database, placement: FakePlacement) -> PlacementSync:
    """Return a sync for which hosts named edge-* have no compute node."""
    return PlacementSync(database, placement, ['edge-*'])


def test_sync_without_compute_creates_root(
    database: Database, placement: FakePlacement, edge_sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, 'edge-1', 'gpu')
    expected = edge_sync.rehearse('edge-1')
    assert placement.writes == []
    assert edge_sync.sync('edge-1') == expected
    root = placement.find_provider_by_name('edge-1')
    assert root is not None
    assert root.parent_uuid is None
    assert placement.providers[root.uuid].traits == {OWNER_CYBORG}
    assert placement.providers[root.uuid].inventories == {}
    assert placement.providers[rp_uuid].node.parent_uuid == root.uuid
    placement.calls.clear()
    assert edge_sync.sync('edge-1') == SyncResult()
    assert len(placement.calls) == 2
    assert PlacementSync(database, placement, ['edge-1']).sync('edge-1') == SyncResult()


def test_sync_root_repaired_keeps_foreign_traits(
    database: Database, placement: FakePlacement, edge_sync: PlacementSync
) -> None:
    add_device(database, 'edge-1', 'gpu')
    edge_sync.sync('edge-1')
    node = placement.find_provider_by_name('edge-1')
    assert node is not None
    root = placement.providers[node.uuid]
    root.traits, root.inventories = (
        frozenset({'HW_GPU_API'}),
        {'VCPU': ProviderInventory(4)},
    )
    root.node = replace(node, name='misnamed')
    root.touch()
    assert len(edge_sync.sync('edge-1').changes) == 2
    assert root.node.name == 'edge-1'
    assert root.traits == {'HW_GPU_API', OWNER_CYBORG}
    assert root.inventories == {'VCPU': ProviderInventory(4)}
    assert edge_sync.sync('edge-1', SyncMode(deep=True)) == SyncResult()


def test_sync_root_of_nova_is_unchanged(
    database: Database, placement: FakePlacement, edge_sync: PlacementSync
) -> None:
    nova_root = placement.create_provider(str(uuid4()), 'edge-1', None)
    rp_uuid = add_device(database, 'edge-1', 'gpu')
    edge_sync.sync('edge-1')
    assert placement.providers[rp_uuid].node.parent_uuid == nova_root.uuid
    assert placement.providers[nova_root.uuid].traits == frozenset()
    remove_devices(database, [rp_uuid])
    edge_sync.sync('edge-1')
    assert set(placement.providers) >= {nova_root.uuid}


@pytest.mark.parametrize('guest', [True, False])
def test_sync_last_device_removed_deletes_root(
    database: Database, placement: FakePlacement, edge_sync: PlacementSync, guest: bool
) -> None:
    rp_uuid = add_device(database, 'edge-1', 'gpu')
    edge_sync.sync('edge-1')
    root = placement.find_provider_by_name('edge-1')
    assert root is not None
    if guest:
        placement.create_provider(str(uuid4()), 'edge-1_of_others', root.uuid)
    remove_devices(database, [rp_uuid])
    expected = edge_sync.rehearse('edge-1')
    assert edge_sync.sync('edge-1') == expected
    assert len(expected.changes) == (1 if guest else 2)
    assert (root.uuid in placement.providers) is guest
    assert rp_uuid not in placement.providers
    assert edge_sync.sync('edge-1') == SyncResult()
