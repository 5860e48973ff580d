# SPDX-License-Identifier: Apache-2.0
"""What a sync does beyond the usual: takes traits back, repairs, rehearses."""

import copy
from collections.abc import Collection
from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Marked
from cyborg_lite.conductor.placement_sync import PlacementSync, SyncResult
from cyborg_lite.db import providers
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.providers import OWNER, Inventory, TreeNode
from tests.fakes.databases import database_fixture
from tests.fakes.placement import FakePlacement
from tests.fakes.provider_rows import add_device, change_deployable, remove_devices
from tests.fakes.statements import statements, writes

HOST = 'compute-1'

database = database_fixture('sqlite')


@pytest.fixture
def placement() -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    return placement


@pytest.fixture
def root(placement: FakePlacement) -> TreeNode:
    (root,) = placement.providers.values()
    return root.node


@pytest.fixture
def sync(database: Database, placement: FakePlacement) -> PlacementSync:
    return PlacementSync(database, placement)


@pytest.fixture
def nic(database: Database, sync: PlacementSync) -> str:
    """A provider with a trait that could as well be an operator's."""
    rp_uuid = add_device(database, HOST, 'nic', traits=['CUSTOM_PHYSNET1'])
    sync.sync(HOST)
    return rp_uuid


def told(database: Database) -> tuple[str, ...] | None:
    (row,) = database.read(providers.providers_of_host, HOST)
    return row.told


# --- traits that were ours ---


def test_a_trait_that_we_told_is_taken_back_and_others_stay(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    provider = placement.providers[nic]
    provider.traits |= {'CUSTOM_RACK_7'}
    placement.known.add('CUSTOM_RACK_7')
    provider.touch()
    change_deployable(database, nic, traits=['CUSTOM_PHYSNET2'])
    sync.sync(HOST)
    assert provider.traits == {OWNER, 'CUSTOM_PHYSNET2', 'CUSTOM_RACK_7'}
    assert told(database) == ('CUSTOM_PHYSNET2',)


def test_a_trait_that_an_operator_sets_later_stays_although_it_was_ours_once(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    change_deployable(database, nic, traits=[])
    sync.sync(HOST)
    provider = placement.providers[nic]
    assert provider.traits == {OWNER}
    provider.traits |= {'CUSTOM_PHYSNET1'}
    provider.touch()
    assert sync.sync(HOST) == SyncResult()
    assert provider.traits == {OWNER, 'CUSTOM_PHYSNET1'}


class Cut(FakePlacement):
    """Obeys what it is told of traits, and its answer does not arrive."""

    def set_traits(self, uuid: str, generation: int, traits: Collection[str]) -> Marked:
        super().set_traits(uuid, generation, traits)
        raise ServiceUnavailable(what='Placement')


def test_a_conductor_that_dies_after_telling_leaves_no_orphan(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    """The record was written first: whoever comes next knows the trait for ours."""
    cut = Cut()
    cut.providers, cut.known = placement.providers, placement.known
    change_deployable(database, nic, traits=['CUSTOM_A'])
    with pytest.raises(ServiceUnavailable):
        PlacementSync(database, cut).sync(HOST)
    assert 'CUSTOM_A' in placement.providers[nic].traits
    change_deployable(database, nic, traits=['CUSTOM_B'])
    sync.sync(HOST)
    assert placement.providers[nic].traits == {OWNER, 'CUSTOM_B'}


def test_the_next_card_in_the_slot_has_nothing_of_the_last(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    """Both come between two syncs: the provider is the same."""
    remove_devices(database, [nic])
    again = add_device(database, HOST, 'nic', traits=['CUSTOM_PHYSNET9'])
    assert again == nic
    sync.sync(HOST)
    assert placement.providers[nic].traits == {OWNER, 'CUSTOM_PHYSNET9'}


def test_a_provider_that_went_leaves_no_record(
    database: Database, sync: PlacementSync, nic: str
) -> None:
    remove_devices(database, [nic])
    sync.sync(HOST)
    add_device(database, HOST, 'nic')
    assert told(database) is None


def test_what_stands_is_one_read_and_no_write(
    database: Database, sync: PlacementSync, nic: str
) -> None:
    with statements(database) as seen:
        sync.sync(HOST)
    assert len(seen) == 1
    assert writes(seen) == []


# --- names and places ---


def test_a_provider_that_was_renamed_gets_its_name_back(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    provider = placement.providers[nic]
    provider.node = replace(provider.node, name='mine')
    (change,) = sync.sync(HOST).changes
    assert str(change) == f'{HOST}_nic: was named mine'
    assert provider.node.name == f'{HOST}_nic'
    assert sync.sync(HOST) == SyncResult()


def stray(placement: FakePlacement, uuid: str) -> TreeNode:
    """Put a provider below another compute node."""
    other = placement.create_provider(str(uuid4()), f'compute-{uuid4()}', None)
    mine = placement.providers[uuid]
    mine.node = replace(mine.node, parent_uuid=other.uuid, root_uuid=other.uuid)
    return other


def test_a_provider_elsewhere_is_brought_back_with_what_others_gave_it(
    placement: FakePlacement, root: TreeNode, sync: PlacementSync, nic: str
) -> None:
    stray(placement, nic)
    placement.providers[nic].traits |= {'CUSTOM_RACK_7'}
    placement.known.add('CUSTOM_RACK_7')
    placement.providers[nic].touch()
    sync.sync(HOST)
    found = placement.providers[nic]
    assert (found.node.parent_uuid, found.node.root_uuid) == (root.uuid, root.uuid)
    assert found.traits == {OWNER, 'CUSTOM_PHYSNET1', 'CUSTOM_RACK_7'}
    assert sync.sync(HOST) == SyncResult()


def test_a_provider_elsewhere_is_not_moved_while_others_depend_on_it(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    server = placement.allocate(nic, {'PGPU': 1})
    other = stray(placement, nic)
    (problem,) = sync.sync(HOST).problems
    assert 'not moved: it is in use' in problem.reason
    del placement.consumers[server.uuid]
    child = placement.create_provider(str(uuid4()), 'child', nic)
    (problem,) = sync.sync(HOST).problems
    assert 'not moved: it has providers below it' in problem.reason
    assert placement.providers[nic].node.parent_uuid == other.uuid
    placement.delete_provider(child.uuid)
    assert sync.sync(HOST).problems == ()


def test_a_placement_that_is_too_old_is_said_to_be(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    stray(placement, nic)
    placement.is_old = True
    (problem,) = sync.sync(HOST).problems
    assert '1.37' in problem.reason


# --- deep ---


def test_only_a_deep_sync_doubts_a_generation_that_stands(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    """As after a restore of Placement's database that ended at the same number."""
    placement.providers[nic].inventories = {}
    assert sync.sync(HOST) == SyncResult()
    assert len(sync.sync(HOST, deep=True).changes) == 1
    assert placement.providers[nic].inventories == {'PGPU': Inventory(1)}
    assert sync.sync(HOST, deep=True) == SyncResult()


def test_a_host_without_devices_needs_no_compute_node(
    database: Database, sync: PlacementSync
) -> None:
    assert sync.sync('storage-1', deep=True) == SyncResult()


# --- rehearsals ---


def test_a_rehearsal_says_what_a_sync_then_does_and_does_nothing(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    placement.providers[nic].traits = frozenset()
    placement.providers[nic].touch()
    gone, used = (add_device(database, HOST, part) for part in ('gone', 'used'))
    sync.sync(HOST)
    placement.providers[nic].inventories = {}
    placement.providers[nic].touch()
    placement.allocate(used, {'PGPU': 1})
    remove_devices(database, [gone, used])
    add_device(database, HOST, 'new', traits=['CUSTOM_UNHEARD_OF'])
    before = copy.deepcopy(placement.providers)
    with statements(database) as seen:
        expected = sync.rehearse(HOST)
    assert writes(seen) == []
    assert placement.providers == before
    assert len(expected.changes) == 6
    assert sync.sync(HOST) == expected
    assert sync.rehearse(HOST) == SyncResult(problems=expected.problems)


def test_a_rehearsal_foresees_what_is_not_moved_and_what_is_renamed(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    stray(placement, nic)
    before = copy.deepcopy(placement.providers)
    (change,) = sync.rehearse(HOST).changes
    assert 'was below' in change.what
    assert placement.providers == before


def test_a_rehearsal_foresees_that_a_class_in_use_stays(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    placement.allocate(nic, {'PGPU': 1})
    change_deployable(database, nic, resource_class='VGPU')
    expected = sync.rehearse(HOST)
    assert expected.problems
    assert sync.sync(HOST) == expected
