# SPDX-License-Identifier: Apache-2.0
"""Few calls, nothing of others touched, and right in the end whatever happens."""

from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Stocked
from cyborg_lite.conductor.placement_sync import (
    PlacementSync,
    PlacementSyncHandler,
    SyncResult,
)
from cyborg_lite.db import jobs, providers
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    ComputeNodeAbsent,
    PlacementConflict,
    RemoteError,
    ServiceUnavailable,
)
from cyborg_lite.model.jobs import JobState, Owner
from cyborg_lite.model.providers import (
    OWNER,
    OWNER_NOVA,
    Inventories,
    Inventory,
    TreeNode,
)
from tests.fakes.databases import database_fixture
from tests.fakes.placement import FakePlacement
from tests.fakes.provider_rows import (
    add_device,
    change_deployable,
    change_device,
    remove_devices,
)

HOST = 'compute-1'
GPU = 'CUSTOM_NVIDIA_1EB8'

database = database_fixture('sqlite')


@pytest.fixture
def placement() -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    placement.calls.clear()
    return placement


@pytest.fixture
def root(placement: FakePlacement) -> TreeNode:
    (root,) = placement.providers.values()
    return root.node


@pytest.fixture
def sync(database: Database, placement: FakePlacement) -> PlacementSync:
    return PlacementSync(database, placement)


def calls_of(placement: FakePlacement, sync: PlacementSync) -> list[str]:
    """What one more sync asks of Placement."""
    placement.calls.clear()
    sync.sync(HOST)
    return list(placement.calls)


def reasons(result: SyncResult) -> str:
    return '; '.join(problem.reason for problem in result.problems)


def foreign(
    placement: FakePlacement, root: TreeNode, name: str, *traits: str
) -> TreeNode:
    """A provider that somebody else made under the compute node."""
    node = placement.create_provider(str(uuid4()), name, root.uuid)
    placement.providers[node.uuid].traits = frozenset(traits)
    placement.providers[node.uuid].inventories = {'PGPU': Inventory(1)}
    return node


def test_a_device_becomes_a_provider(
    database: Database, placement: FakePlacement, root: TreeNode, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, '0000:3b:00.0')
    sync.sync(HOST)
    made = placement.providers[rp_uuid]
    assert made.node.name == f'{HOST}_0000:3b:00.0'
    assert made.node.parent_uuid == root.uuid
    assert made.inventories == {'PGPU': Inventory(1)}
    assert made.traits == {OWNER, GPU}


def test_custom_classes_are_made_first(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'qat', resource_class='CUSTOM_QAT')
    sync.sync(HOST)
    assert set(placement.providers[rp_uuid].inventories) == {'CUSTOM_QAT'}


def test_a_first_sync_costs_three_calls_a_provider_and_a_few_more(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    for number in range(16):
        add_device(database, HOST, f'gpu{number}')
    calls = calls_of(placement, sync)
    # The root, the tree, and the one custom trait.
    assert len(calls) == 3 * 16 + 3


def test_a_second_sync_only_reads_and_only_twice(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    for number in range(16):
        add_device(database, HOST, f'gpu{number}')
    sync.sync(HOST)
    calls = calls_of(placement, sync)
    assert len(calls) == 2
    assert placement.writes == []


def test_another_conductor_reads_all_and_writes_nothing(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    for number in range(4):
        add_device(database, HOST, f'gpu{number}')
    sync.sync(HOST)
    calls = calls_of(placement, PlacementSync(database, placement))
    assert len(calls) == 2 + 2 * 4
    assert placement.writes == []


def test_one_changed_device_of_many_costs_calls_for_that_one(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    uuids = [add_device(database, HOST, f'gpu{number}') for number in range(16)]
    sync.sync(HOST)
    change_deployable(database, uuids[7], num_accelerators=2)
    calls = calls_of(placement, sync)
    assert len(calls) == 3
    assert placement.writes == [f'PUT /resource_providers/{uuids[7]}/inventories']


def test_an_allocation_makes_us_read_that_provider_and_write_nothing(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    uuids = [add_device(database, HOST, f'gpu{number}') for number in range(16)]
    sync.sync(HOST)
    placement.allocate(uuids[3], {'PGPU': 1})
    calls = calls_of(placement, sync)
    assert len(calls) == 4
    assert placement.writes == []


def test_maintenance_reserves_a_device_and_its_end_frees_it(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu', num_accelerators=4)
    sync.sync(HOST)
    for status, reserved in (('maintaining', 4), ('enabled', 0)):
        change_device(database, rp_uuid, status=status)
        sync.sync(HOST)
        assert placement.providers[rp_uuid].inventories['PGPU'].reserved == reserved


def test_what_is_reserved_survives_any_other_change(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu', num_accelerators=4)
    change_device(database, rp_uuid, status='maintaining')
    sync.sync(HOST)
    change_deployable(database, rp_uuid, num_accelerators=5, traits=['CUSTOM_NEW'])
    sync.sync(HOST)
    assert placement.providers[rp_uuid].inventories['PGPU'] == Inventory(
        total=5, reserved=5, max_unit=5
    )


def test_a_device_that_went_takes_its_provider_along(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    kept, gone = (add_device(database, HOST, part) for part in ('a', 'b'))
    sync.sync(HOST)
    remove_devices(database, [gone])
    sync.sync(HOST)
    assert kept in placement.providers
    assert gone not in placement.providers


def test_a_provider_in_use_is_closed_and_reported_instead_of_deleted(
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
        assert 'not on the host any more' in reasons(result)
    del placement.consumers[server.uuid]
    assert sync.sync(HOST).problems == ()
    assert rp_uuid not in placement.providers


def test_a_class_in_use_is_closed_beside_the_new_one(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    """A card that is split while a server still has all of it."""
    rp_uuid = add_device(database, HOST, 'gpu')
    sync.sync(HOST)
    server = placement.allocate(rp_uuid, {'PGPU': 1})
    change_deployable(database, rp_uuid, resource_class='VGPU', num_accelerators=8)
    for changes in (1, 0):
        result = sync.sync(HOST)
        assert len(result.changes) == changes
        assert 'PGPU is not offered any more, but in use' in reasons(result)
        assert placement.providers[rp_uuid].inventories == {
            'PGPU': Inventory(1, reserved=1),
            'VGPU': Inventory(8, max_unit=8),
        }
    del placement.consumers[server.uuid]
    assert sync.sync(HOST).problems == ()
    assert set(placement.providers[rp_uuid].inventories) == {'VGPU'}


def test_a_host_that_is_no_compute_node_yet_is_said_to_be_none(
    database: Database, sync: PlacementSync
) -> None:
    add_device(database, 'compute-2', 'gpu')
    with pytest.raises(ComputeNodeAbsent, match='compute-2'):
        sync.sync('compute-2')


def test_nothing_of_others_is_touched(
    database: Database, placement: FakePlacement, root: TreeNode, sync: PlacementSync
) -> None:
    add_device(database, HOST, 'gpu')
    strangers = [
        root,
        foreign(placement, root, f'{HOST}_0000:81:00.0', OWNER_NOVA),
        foreign(placement, root, f'{HOST}_numa0'),
        foreign(placement, root, 'compute-10_gpu', OWNER),
    ]
    before = {node.uuid: replace(placement.providers[node.uuid]) for node in strangers}
    sync.sync(HOST)
    assert {uuid: placement.providers[uuid] for uuid in before} == before


def test_a_device_that_nova_reports_is_not_reported_too(
    database: Database, placement: FakePlacement, root: TreeNode, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, '0000:81:00.0')
    other = add_device(database, HOST, '0000:82:00.0')
    theirs = foreign(placement, root, f'{HOST}_0000:81:00.0', OWNER_NOVA)
    result = sync.sync(HOST)
    assert rp_uuid not in placement.providers
    assert other in placement.providers
    assert theirs.uuid in reasons(result)


def test_a_name_that_is_taken_elsewhere_is_reported(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    add_device(database, HOST, 'gpu')
    holder = placement.create_provider(str(uuid4()), f'{HOST}_gpu', None)
    assert f'provider {holder.uuid} has its name' in reasons(sync.sync(HOST))


def test_a_provider_elsewhere_that_does_not_say_it_is_ours_is_left_there(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu')
    elsewhere = placement.create_provider(str(uuid4()), 'compute-2', None)
    placement.create_provider(rp_uuid, f'{HOST}_gpu', elsewhere.uuid)
    assert f'its parent is {elsewhere.uuid}' in reasons(sync.sync(HOST))
    assert placement.providers[rp_uuid].inventories == {}


class Meddling(FakePlacement):
    """Somebody touches a provider each time we are about to change one."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def set_inventories(
        self, uuid: str, generation: int, inventories: Inventories
    ) -> Stocked:
        if self.times:
            self.times -= 1
            self.providers[uuid].touch()
        return super().set_inventories(uuid, generation, inventories)


@pytest.mark.parametrize('times', [1, 4])
def test_a_conflict_is_read_again_and_tried_again(
    database: Database, times: int
) -> None:
    placement = Meddling(times)
    placement.create_provider(str(uuid4()), HOST, None)
    rp_uuid = add_device(database, HOST, 'gpu')
    result = PlacementSync(database, placement).sync(HOST)
    assert placement.providers[rp_uuid].inventories == {'PGPU': Inventory(1)}
    assert sum(change.what == 'created' for change in result.changes) == 1


def test_conflicts_without_end_are_given_back_to_the_job(database: Database) -> None:
    placement = Meddling(1000)
    placement.create_provider(str(uuid4()), HOST, None)
    add_device(database, HOST, 'gpu')
    with pytest.raises(PlacementConflict):
        PlacementSync(database, placement).sync(HOST)
    assert placement.times == 1000 - 5


class Dying(FakePlacement):
    """Shares the providers of another one, and answers only so many calls."""

    def __init__(self, other: FakePlacement, calls: int) -> None:
        super().__init__()
        self.providers = other.providers
        self.known = other.known
        self.left = calls

    def _called(self, call: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise ServiceUnavailable(what='Placement')
        super()._called(call)


def test_a_placement_that_goes_away_midway_is_finished_later(
    database: Database, placement: FakePlacement
) -> None:
    """At whichever call it goes, what was begun is not lost and not done twice."""
    uuids = [add_device(database, HOST, f'gpu{number}') for number in range(2)]
    attempts = 0
    done = False
    while not done:
        attempts += 1
        try:
            PlacementSync(database, Dying(placement, calls=attempts)).sync(HOST)
            done = True
        except ServiceUnavailable:
            assert attempts < 20
    assert attempts > 5
    for uuid in uuids:
        assert placement.providers[uuid].traits == {OWNER, GPU}
        assert placement.providers[uuid].inventories == {'PGPU': Inventory(1)}


def test_a_provider_that_placement_refuses_does_not_keep_others_out(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    bad = add_device(database, HOST, 'a', traits=['HW_NO_SUCH_TRAIT'])
    good = add_device(database, HOST, 'b')
    with pytest.raises(RemoteError, match='HW_NO_SUCH_TRAIT'):
        sync.sync(HOST)
    assert placement.providers[good].inventories == {'PGPU': Inventory(1)}
    assert placement.providers[bad].inventories == {}


def test_the_job_ends_when_placement_is_right(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu')
    database.write(jobs.add, providers.sync_job(HOST))
    (job,) = database.write(jobs.take, Owner('me', 30_000), 1)
    assert PlacementSyncHandler(database, sync).run(job) is None
    assert rp_uuid in placement.providers
    assert database.read(jobs.count) == ()


def test_the_job_stays_while_placement_is_away(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    placement.errors = [ServiceUnavailable(what='Placement')]
    database.write(jobs.add, providers.sync_job(HOST))
    (job,) = database.write(jobs.take, Owner('me', 30_000), 1)
    with pytest.raises(ServiceUnavailable):
        PlacementSyncHandler(database, sync).run(job)
    (count,) = database.read(jobs.count)
    assert count.state is JobState.RUNNING
