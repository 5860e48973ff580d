# SPDX-License-Identifier: Apache-2.0
"""Syncs of hosts with Placement: results, costs, conflicts and failures."""

from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import ProviderInventories
from cyborg_lite.conductor.providers.sync import (
    PlacementSync,
    PlacementSyncHandler,
    SyncResult,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.errors.providers import ComputeNodeAbsent, PlacementConflict
from cyborg_lite.model.jobs import JobState, Owner
from cyborg_lite.model.operations import NewOperation, OperationKind
from cyborg_lite.model.providers.providers import (
    Inventories,
    ProviderInventory,
    TreeNode,
)
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG, OWNER_NOVA
from tests.builders.provider_rows import (
    add_device,
    change_deployable,
    change_device,
    remove_devices,
)
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'
GPU = 'CUSTOM_NVIDIA_1EB8'


def calls_of(placement: FakePlacement, sync: PlacementSync) -> list[str]:
    """Sync once and return the calls of Placement."""
    placement.calls.clear()
    sync.sync(HOST)
    return list(placement.calls)


def reasons(result: SyncResult) -> str:
    return '; '.join(problem.reason for problem in result.problems)


def foreign(
    placement: FakePlacement, root: TreeNode, name: str, *traits: str
) -> TreeNode:
    """Create a provider of another service below the compute node."""
    node = placement.create_provider(str(uuid4()), name, root.uuid)
    placement.providers[node.uuid].traits = frozenset(traits)
    placement.providers[node.uuid].inventories = {'PGPU': ProviderInventory(1)}
    return node


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


def test_sync_creates_custom_class(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'qat', resource_class='CUSTOM_QAT')
    sync.sync(HOST)
    assert set(placement.providers[rp_uuid].inventories) == {'CUSTOM_QAT'}


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


def test_sync_maintenance_reserves_device(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu', num_accelerators=4)
    sync.sync(HOST)
    for status, reserved in (('maintaining', 4), ('enabled', 0)):
        change_device(database, rp_uuid, status=status)
        sync.sync(HOST)
        assert placement.providers[rp_uuid].inventories['PGPU'].reserved == reserved


def test_sync_other_change_keeps_reservation(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu', num_accelerators=4)
    change_device(database, rp_uuid, status='maintaining')
    sync.sync(HOST)
    change_deployable(database, rp_uuid, num_accelerators=5, traits=['CUSTOM_NEW'])
    sync.sync(HOST)
    assert placement.providers[rp_uuid].inventories['PGPU'] == ProviderInventory(
        total=5, reserved=5, max_unit=5
    )


def test_sync_removed_device_empties_provider(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    first, second = (add_device(database, HOST, part) for part in ('a', 'b'))
    sync.sync(HOST)
    remove_devices(database, [second])
    sync.sync(HOST)
    assert placement.providers[first].inventories == {'PGPU': ProviderInventory(1)}
    assert placement.providers[second].inventories == {}
    assert placement.providers[second].traits == {OWNER_CYBORG, EMPTIED}


def test_sync_removed_device_in_use_closes_provider(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu', num_accelerators=4)
    sync.sync(HOST)
    server = placement.allocate(rp_uuid, {'PGPU': 1})
    remove_devices(database, [rp_uuid])
    for _ in range(2):
        result = sync.sync(HOST)
        assert placement.providers[rp_uuid].inventories['PGPU'].reserved == 4
        assert [problem.uuid for problem in result.problems] == [rp_uuid]
        assert 'the device is removed, but allocated' in reasons(result)
    del placement.consumers[server.uuid]
    assert sync.sync(HOST).problems == ()
    assert placement.providers[rp_uuid].inventories == {}


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


def test_sync_device_of_nova_is_not_created(
    database: Database, placement: FakePlacement, root: TreeNode, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, '0000:81:00.0')
    second = add_device(database, HOST, '0000:82:00.0')
    nova_provider = foreign(placement, root, f'{HOST}_0000:81:00.0', OWNER_NOVA)
    result = sync.sync(HOST)
    assert rp_uuid not in placement.providers
    assert second in placement.providers
    assert nova_provider.uuid in reasons(result)


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


def test_sync_repeated_conflicts_raise(database: Database) -> None:
    placement = Meddling(1000)
    placement.create_provider(str(uuid4()), HOST, None)
    add_device(database, HOST, 'gpu')
    with pytest.raises(PlacementConflict):
        PlacementSync(database, placement).sync(HOST)
    assert placement.times == 1000 - 5


class Dying(FakePlacement):
    """Placement that shares providers and answers a limited number of calls."""

    def __init__(self, shared: FakePlacement, calls: int) -> None:
        super().__init__()
        self.providers = shared.providers
        self.names = shared.names
        self.remaining_calls = calls

    def _count_call(self, call: str) -> None:
        self.remaining_calls -= 1
        if self.remaining_calls < 0:
            raise ServiceUnavailable(what='Placement')
        super()._count_call(call)


def test_sync_interrupted_at_any_call_is_completed(
    database: Database, placement: FakePlacement
) -> None:
    """Interrupt the sync at each call in turn."""
    uuids = [add_device(database, HOST, f'gpu{number}') for number in range(2)]
    attempts = 0
    completed = False
    while not completed:
        attempts += 1
        try:
            PlacementSync(database, Dying(placement, calls=attempts)).sync(HOST)
            completed = True
        except ServiceUnavailable:
            assert attempts < 20
    assert attempts > 5
    for uuid in uuids:
        assert placement.providers[uuid].traits == {OWNER_CYBORG, GPU}
        assert placement.providers[uuid].inventories == {'PGPU': ProviderInventory(1)}


def test_sync_rejected_provider_does_not_block_others(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    bad = add_device(database, HOST, 'a', traits=['HW_NO_SUCH_TRAIT'])
    good = add_device(database, HOST, 'b')
    with pytest.raises(RemoteError, match='HW_NO_SUCH_TRAIT'):
        sync.sync(HOST)
    assert placement.providers[good].inventories == {'PGPU': ProviderInventory(1)}
    assert placement.providers[bad].inventories == {}


def test_sync_job_placement_down_stays(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    placement.errors = [ServiceUnavailable(what='Placement')]
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    (job,) = database.write(queue.lease_jobs, Owner('me', 30_000), 1)
    with pytest.raises(ServiceUnavailable):
        PlacementSyncHandler(database, sync).run(job)
    (count,) = database.read(queue.count_jobs)
    assert count.state is JobState.RUNNING


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
