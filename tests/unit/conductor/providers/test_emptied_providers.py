# SPDX-License-Identifier: Apache-2.0
"""Providers of removed devices: kept without inventory, reused, deleted."""

from uuid import uuid4

import pytest
from sqlalchemy import delete
from sqlalchemy.orm import Session

from cyborg_lite.conductor.providers.sync import PlacementSync, SyncMode, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable, Device
from cyborg_lite.model.providers.providers import ProviderInventory, TreeNode
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG, OWNER_NOVA
from tests.builders.provider_rows import add_device, change_deployable, remove_devices
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'
ADDRESS = '0000:3b:00.0'
RACK = 'CUSTOM_RACK_7'


@pytest.fixture
def gpu(database: Database, placement: FakePlacement, sync: PlacementSync) -> str:
    """Return the emptied provider of a card, with a trait of the operator."""
    placement.names.add(RACK)
    traits = ['CUSTOM_NVIDIA_1EB8', 'CUSTOM_PHYSNET1']
    rp_uuid = add_device(database, HOST, ADDRESS, traits=traits)
    sync.sync(HOST)
    provider = placement.providers[rp_uuid]
    provider.traits |= {RACK}
    provider.touch()
    remove_devices(database, [rp_uuid])
    sync.sync(HOST)
    return rp_uuid


def test_sync_emptied_provider_keeps_traits_of_operator(
    placement: FakePlacement, gpu: str
) -> None:
    assert placement.providers[gpu].inventories == {}
    assert placement.providers[gpu].traits == {OWNER_CYBORG, EMPTIED, RACK}


def test_sync_emptied_provider_unchanged_costs_two_reads(
    placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    placement.calls.clear()
    assert sync.sync(HOST) == SyncResult()
    assert len(placement.calls) == 2
    assert placement.writes == []


def test_sync_returned_device_reuses_provider(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    placement.calls.clear()
    assert add_device(database, HOST, ADDRESS) == gpu
    sync.sync(HOST)
    provider = placement.providers[gpu]
    assert provider.inventories == {'PGPU': ProviderInventory(1)}
    assert provider.traits == {OWNER_CYBORG, 'CUSTOM_NVIDIA_1EB8', RACK}
    assert placement.counts()['DELETE'] == 0
    assert placement.counts()['POST'] == 0


def test_sync_prune_deletes_emptied_provider(
    placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    expected = sync.rehearse(HOST, prune=True)
    assert [change.description for change in expected.changes] == ['deleted']
    assert sync.sync(HOST, SyncMode(prune=True)) == expected
    assert gpu not in placement.providers


def test_sync_card_handed_to_nova_deletes_provider(
    placement: FakePlacement, root: TreeNode, sync: PlacementSync, gpu: str
) -> None:
    name = f'{HOST}_{ADDRESS.upper()}'
    nova_provider = placement.create_provider(str(uuid4()), name, root.uuid)
    placement.providers[nova_provider.uuid].traits = frozenset({OWNER_NOVA})
    sync.sync(HOST)
    assert gpu not in placement.providers
    assert nova_provider.uuid in placement.providers


def test_sync_forgotten_host_old_placement_keeps_providers(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    """Placement before 20.0 moves no provider; nova-compute knows the emptied one."""
    rp_uuid = add_device(database, HOST, ADDRESS)
    sync.sync(HOST)
    database.write(forget_devices)
    placement.is_old = True
    (problem,) = sync.sync(HOST).problems
    assert '1.37' in problem.reason
    sync.sync(HOST, SyncMode(delete_detached=True))
    assert placement.providers[rp_uuid].inventories == {}


def forget_devices(session: Session) -> None:
    session.execute(delete(Deployable))
    session.execute(delete(Device))


def test_sync_half_emptied_provider_is_completed(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    """A conductor stopped after it had removed the inventory."""
    provider = placement.providers[gpu]
    provider.traits = frozenset({OWNER_CYBORG, 'CUSTOM_PHYSNET1', RACK})
    provider.touch()
    sync.sync(HOST)
    assert provider.traits == {OWNER_CYBORG, EMPTIED, RACK}


def test_sync_fence_raises_each_generation(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    second = add_device(database, HOST, 'second', num_accelerators=4)
    sync.sync(HOST)
    before = {uuid: placement.providers[uuid].node.generation for uuid in (gpu, second)}
    assert sync.sync(HOST, SyncMode(fence=True)) == SyncResult()
    for uuid, generation in before.items():
        assert placement.providers[uuid].node.generation > generation
    assert placement.providers[second].inventories == {
        'PGPU': ProviderInventory(4, max_unit=4)
    }
    change_deployable(database, second, num_accelerators=3)
    placement.calls.clear()
    sync.sync(HOST, SyncMode(fence=True))
    assert placement.counts()['PUT'] == 2
