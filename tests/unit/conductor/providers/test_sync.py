# SPDX-License-Identifier: Apache-2.0
"""Syncs of hosts with Placement: results, costs, failures, repairs and rehearsals."""

import copy
from collections.abc import Collection
from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import ProviderInventories, ProviderTraits
from cyborg_lite.conductor.providers.sync import (
    PlacementSync,
    PlacementSyncHandler,
    SyncMode,
    SyncResult,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.errors.providers import ComputeNodeAbsent
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.operations import NewOperation, OperationKind
from cyborg_lite.model.providers.providers import (
    Inventories,
    ProviderInventory,
    TreeNode,
)
from cyborg_lite.model.traits import OWNER_CYBORG, OWNER_NOVA
from tests.builders.provider_rows import add_device, change_deployable, remove_devices
from tests.doubles.placement import FakePlacement
from tests.support.sql_statements import statements, writes

HOST = 'compute-1'
GPU = 'CUSTOM_NVIDIA_1EB8'


def calls_of(placement: FakePlacement, sync: PlacementSync) -> list[str]:
    """Sync once and return the calls of Placement."""
    placement.calls.clear()
    sync.sync(HOST)
    return list(placement.calls)


def reasons(result: SyncResult) -> str:
    return '; '.join(problem.reason for problem in result.problems)


def test_sync_creates_provider(
    database: Database, placement: FakePlacement, root: TreeNode, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, '0000:3b:00.0')
    sync.sync(HOST)
    provider = placement.providers[rp_uuid]
    assert provider.node.name == f'{HOST}_0000:3b:00.0'
    assert provider.node.parent_uuid == root.uuid
    assert provider.inventories == {'PGPU': ProviderInventory(1)}
    assert provider.traits == {OWNER_CYBORG, GPU}


def test_sync_first_costs_two_calls_per_provider(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    for number in range(16):
        add_device(database, HOST, f'gpu{number}')
    calls = calls_of(placement, sync)
    # The root, the tree, the one custom trait, and the inventories of all providers.
    assert len(calls) == 2 * 16 + 4


def test_sync_second_costs_two_reads(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    for number in range(16):
        add_device(database, HOST, f'gpu{number}')
    sync.sync(HOST)
    calls = calls_of(placement, sync)
    assert len(calls) == 2
    assert placement.writes == []


def test_sync_by_other_conductor_only_reads(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    for number in range(4):
        add_device(database, HOST, f'gpu{number}')
    sync.sync(HOST)
    calls = calls_of(placement, PlacementSync(database, placement))
    assert len(calls) == 2 + 2 * 4
    assert placement.writes == []


def test_sync_one_changed_device_costs_three_calls(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    uuids = [add_device(database, HOST, f'gpu{number}') for number in range(16)]
    sync.sync(HOST)
    change_deployable(database, uuids[7], num_accelerators=2)
    calls = calls_of(placement, sync)
    assert len(calls) == 3
    assert placement.writes == [f'PUT /resource_providers/{uuids[7]}/inventories']


def test_sync_after_allocation_reads_one_provider(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    uuids = [add_device(database, HOST, f'gpu{number}') for number in range(16)]
    sync.sync(HOST)
    placement.allocate(uuids[3], {'PGPU': 1})
    calls = calls_of(placement, sync)
    assert len(calls) == 4
    assert placement.writes == []


def test_sync_obsolete_class_in_use_is_closed(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    """An undivided card becomes vGPUs while an instance uses it."""
    rp_uuid = add_device(database, HOST, 'gpu')
    sync.sync(HOST)
    server = placement.allocate(rp_uuid, {'PGPU': 1})
    change_deployable(database, rp_uuid, resource_class='VGPU', num_accelerators=8)
    for changes in (1, 0):
        result = sync.sync(HOST)
        assert len(result.changes) == changes
        assert 'resource class PGPU is obsolete, but allocated' in reasons(result)
        assert placement.providers[rp_uuid].inventories == {
            'PGPU': ProviderInventory(1, reserved=1),
            'VGPU': ProviderInventory(8, max_unit=8),
        }
    del placement.consumers[server.uuid]
    assert sync.sync(HOST).problems == ()
    assert set(placement.providers[rp_uuid].inventories) == {'VGPU'}


def test_sync_without_compute_node_raises(
    database: Database, sync: PlacementSync
) -> None:
    add_device(database, 'compute-2', 'gpu')
    with pytest.raises(ComputeNodeAbsent, match='compute-2'):
        sync.sync('compute-2')


def foreign(
    placement: FakePlacement, root: TreeNode, name: str, *traits: str
) -> TreeNode:
    """Create a provider of another service below the compute node."""
    node = placement.create_provider(str(uuid4()), name, root.uuid)
    placement.providers[node.uuid].traits = frozenset(traits)
    placement.providers[node.uuid].inventories = {'PGPU': ProviderInventory(1)}
    return node


def test_sync_leaves_foreign_providers_unchanged(
    database: Database, placement: FakePlacement, root: TreeNode, sync: PlacementSync
) -> None:
    add_device(database, HOST, 'gpu')
    foreign_nodes = [
        root,
        foreign(placement, root, f'{HOST}_0000:81:00.0', OWNER_NOVA),
        foreign(placement, root, f'{HOST}_numa0'),
        foreign(placement, root, 'compute-10_gpu', OWNER_CYBORG),
    ]
    before = {
        node.uuid: replace(placement.providers[node.uuid]) for node in foreign_nodes
    }
    sync.sync(HOST)
    assert {uuid: placement.providers[uuid] for uuid in before} == before


def test_sync_name_taken_is_reported(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    add_device(database, HOST, 'gpu')
    holder = placement.create_provider(str(uuid4()), f'{HOST}_gpu', None)
    assert f'provider {holder.uuid} has its name' in reasons(sync.sync(HOST))


def test_sync_foreign_provider_with_our_uuid_is_unchanged(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu')
    elsewhere = placement.create_provider(str(uuid4()), 'compute-2', None)
    placement.create_provider(rp_uuid, f'{HOST}_gpu', elsewhere.uuid)
    assert f'its parent is {elsewhere.uuid}' in reasons(sync.sync(HOST))
    assert placement.providers[rp_uuid].inventories == {}


class Meddling(FakePlacement):
    """Placement in which another client changes a provider before each write."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def set_inventories(
        self, uuid: str, generation: int, inventories: Inventories
    ) -> ProviderInventories:
        if self.times:
            self.times -= 1
            self.providers[uuid].touch()
        return super().set_inventories(uuid, generation, inventories)


@pytest.mark.parametrize('times', [1, 4])
def test_sync_generation_conflict_is_retried(database: Database, times: int) -> None:
    placement = Meddling(times)
    placement.create_provider(str(uuid4()), HOST, None)
    rp_uuid = add_device(database, HOST, 'gpu')
    result = PlacementSync(database, placement).sync(HOST)
    assert placement.providers[rp_uuid].inventories == {'PGPU': ProviderInventory(1)}
    assert sum(change.description == 'created' for change in result.changes) == 1


def test_sync_rejected_provider_does_not_block_others(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    bad = add_device(database, HOST, 'a', traits=['HW_NO_SUCH_TRAIT'])
    good = add_device(database, HOST, 'b')
    with pytest.raises(RemoteError, match='HW_NO_SUCH_TRAIT'):
        sync.sync(HOST)
    assert placement.providers[good].inventories == {'PGPU': ProviderInventory(1)}
    assert placement.providers[bad].inventories == {}


def test_sync_job_stores_changes_in_operation(
    database: Database, sync: PlacementSync
) -> None:
    add_device(database, HOST, 'a')
    new = NewOperation(OperationKind.RECONCILE)
    job = replace(queue.placement_sync_job(HOST), operation=new)
    database.write(queue.add_job, job)
    (leased,) = database.write(queue.lease_jobs, Owner('me', 30_000), 1)
    PlacementSyncHandler(database, sync).run(leased)
    operation = database.read(operations.read_operation, new.uuid)
    assert [step['name'] for step in operation.steps] == ['comparing-providers']
    assert operation.result is not None
    assert {change['provider'] for change in operation.result['changes']} == {
        f'{HOST}_a'
    }
    assert operation.result['problems'] == []


# --- hosts without a compute node -----------------------------------------------------


@pytest.fixture
def edge_sync(database: Database, placement: FakePlacement) -> PlacementSync:
    """Return a sync for which hosts named edge-* have no compute node."""
    return PlacementSync(database, placement, ['edge-*'])


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


# --- repairs --------------------------------------------------------------------------


@pytest.fixture
def nic(database: Database, sync: PlacementSync) -> str:
    """Return a provider with a trait that an operator could have set as well."""
    rp_uuid = add_device(database, HOST, 'nic', traits=['CUSTOM_PHYSNET1'])
    sync.sync(HOST)
    return rp_uuid


def read_published_traits(database: Database) -> tuple[str, ...] | None:
    (row,) = database.read(providers.list_providers_of_host, HOST)
    return row.published_traits


# --- former traits of Cyborg ---


def test_sync_removes_own_old_trait_only(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    provider = placement.providers[nic]
    provider.traits |= {'CUSTOM_RACK_7'}
    placement.names.add('CUSTOM_RACK_7')
    provider.touch()
    change_deployable(database, nic, traits=['CUSTOM_PHYSNET2'])
    sync.sync(HOST)
    assert provider.traits == {OWNER_CYBORG, 'CUSTOM_PHYSNET2', 'CUSTOM_RACK_7'}
    assert read_published_traits(database) == ('CUSTOM_PHYSNET2',)


def test_sync_keeps_former_trait_of_operator(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    change_deployable(database, nic, traits=[])
    sync.sync(HOST)
    provider = placement.providers[nic]
    assert provider.traits == {OWNER_CYBORG}
    provider.traits |= {'CUSTOM_PHYSNET1'}
    provider.touch()
    assert sync.sync(HOST) == SyncResult()
    assert provider.traits == {OWNER_CYBORG, 'CUSTOM_PHYSNET1'}


class Cut(FakePlacement):
    """Placement that sets traits and loses the reply."""

    def set_traits(
        self, uuid: str, generation: int, traits: Collection[str]
    ) -> ProviderTraits:
        super().set_traits(uuid, generation, traits)
        raise ServiceUnavailable(what='Placement')


def test_sync_crash_after_set_traits_is_repaired(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    """The trait was recorded first, so the next sync may remove it."""
    cut = Cut()
    cut.providers, cut.names = placement.providers, placement.names
    change_deployable(database, nic, traits=['CUSTOM_A'])
    with pytest.raises(ServiceUnavailable):
        PlacementSync(database, cut).sync(HOST)
    assert 'CUSTOM_A' in placement.providers[nic].traits
    change_deployable(database, nic, traits=['CUSTOM_B'])
    sync.sync(HOST)
    assert placement.providers[nic].traits == {OWNER_CYBORG, 'CUSTOM_B'}


def test_sync_deleted_provider_has_no_record(
    database: Database, sync: PlacementSync, nic: str
) -> None:
    remove_devices(database, [nic])
    sync.sync(HOST, SyncMode(prune=True))
    add_device(database, HOST, 'nic')
    assert read_published_traits(database) is None


def test_sync_unchanged_is_one_read(
    database: Database, sync: PlacementSync, nic: str
) -> None:
    with statements(database) as sql:
        sync.sync(HOST)
    assert len(sql) == 1
    assert writes(sql) == []


# --- names and places ---


def stray(placement: FakePlacement, uuid: str) -> TreeNode:
    """Put a provider below another compute node."""
    foreign_root = placement.create_provider(str(uuid4()), f'compute-{uuid4()}', None)
    provider = placement.providers[uuid]
    provider.node = replace(
        provider.node, parent_uuid=foreign_root.uuid, root_uuid=foreign_root.uuid
    )
    return foreign_root


def test_sync_moved_provider_in_use_is_reported(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    server = placement.allocate(nic, {'PGPU': 1})
    foreign_root = stray(placement, nic)
    (problem,) = sync.sync(HOST).problems
    assert 'cannot be moved: it has allocations' in problem.reason
    del placement.consumers[server.uuid]
    child = placement.create_provider(str(uuid4()), 'child', nic)
    (problem,) = sync.sync(HOST).problems
    assert 'cannot be moved: it has child providers' in problem.reason
    assert placement.providers[nic].node.parent_uuid == foreign_root.uuid
    placement.delete_provider(child.uuid)
    assert sync.sync(HOST).problems == ()


# --- deep ---


def test_sync_deep_ignores_cached_generation(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    """The database of Placement was restored to the same generation."""
    placement.providers[nic].inventories = {}
    assert sync.sync(HOST) == SyncResult()
    assert len(sync.sync(HOST, SyncMode(deep=True)).changes) == 1
    assert placement.providers[nic].inventories == {'PGPU': ProviderInventory(1)}
    assert sync.sync(HOST, SyncMode(deep=True)) == SyncResult()


def test_sync_without_devices_needs_no_compute_node(
    database: Database, sync: PlacementSync
) -> None:
    assert sync.sync('storage-1', SyncMode(deep=True)) == SyncResult()


# --- rehearsals ---


def test_rehearse_predicts_sync_and_changes_nothing(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    placement.providers[nic].traits = frozenset()
    placement.providers[nic].touch()
    removed, used = (add_device(database, HOST, part) for part in ('removed', 'used'))
    sync.sync(HOST)
    placement.providers[nic].inventories = {}
    placement.providers[nic].touch()
    placement.allocate(used, {'PGPU': 1})
    remove_devices(database, [removed, used])
    add_device(database, HOST, 'new', traits=['CUSTOM_UNHEARD_OF'])
    before = copy.deepcopy(placement.providers)
    with statements(database) as sql:
        expected = sync.rehearse(HOST)
    assert writes(sql) == []
    assert placement.providers == before
    assert len(expected.changes) == 7
    assert sync.sync(HOST) == expected
    assert sync.rehearse(HOST) == SyncResult(problems=expected.problems)


def test_rehearse_predicts_move(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    stray(placement, nic)
    before = copy.deepcopy(placement.providers)
    (change,) = sync.rehearse(HOST).changes
    assert 'was below' in change.description
    assert placement.providers == before


def test_rehearse_predicts_class_in_use(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    placement.allocate(nic, {'PGPU': 1})
    change_deployable(database, nic, resource_class='VGPU')
    expected = sync.rehearse(HOST)
    assert expected.problems
    assert sync.sync(HOST) == expected
