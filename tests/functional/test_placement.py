# SPDX-License-Identifier: Apache-2.0
"""What we rely on in Placement, of the real one and of its twin alike."""

from collections.abc import Mapping
from typing import Protocol
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Consumer, Placement
from cyborg_lite.exceptions import (
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
    RemoteError,
)
from cyborg_lite.model.providers import OWNER, Inventory, TreeNode
from tests.fakes.placement import FakePlacement
from tests.fakes.real_placement import CountedRemote, remote

__all__ = ['remote']


class Cloud(Protocol):
    """A Placement, and a scheduler that allocates."""

    placement: Placement

    def allocate(self, provider: str, resources: Mapping[str, int]) -> Consumer: ...


class RealCloud:
    def __init__(self, remote: CountedRemote) -> None:
        self.placement: Placement = Placement(remote)
        self._remote = remote

    def allocate(self, provider: str, resources: Mapping[str, int]) -> Consumer:
        uuid = str(uuid4())
        body = {
            'allocations': {provider: {'resources': dict(resources)}},
            'project_id': 'project',
            'user_id': 'user',
            'consumer_generation': None,
        }
        self._remote.send('PUT', f'/allocations/{uuid}', body)
        return Consumer(uuid, 'project', 'user', 1, {provider: resources})


class FakeCloud:
    def __init__(self) -> None:
        twin = FakePlacement()
        self.placement: Placement = twin
        self.allocate = twin.allocate


@pytest.fixture(params=['real', 'twin'])
def cloud(request: pytest.FixtureRequest) -> Cloud:
    if request.param == 'twin':
        return FakeCloud()
    return RealCloud(request.getfixturevalue('remote'))


@pytest.fixture
def placement(cloud: Cloud) -> Placement:
    return cloud.placement


def fresh(placement: Placement, parent: TreeNode | None = None) -> TreeNode:
    uuid = str(uuid4())
    parent_uuid = parent.uuid if parent else None
    return placement.create_provider(uuid, f'provider_{uuid}', parent_uuid)


GPUS = {'PGPU': Inventory(4, max_unit=4)}


def test_a_provider_is_found_by_uuid_and_by_name(placement: Placement) -> None:
    made = fresh(placement)
    assert placement.provider(made.uuid) == made
    assert placement.provider_named(made.name) == made
    assert (made.parent_uuid, made.root_uuid) == (None, made.uuid)


def test_what_is_not_there_is_none(placement: Placement) -> None:
    assert placement.provider(str(uuid4())) is None
    assert placement.provider_named('nobody') is None
    assert placement.tree(str(uuid4())) == ()
    assert placement.consumer(str(uuid4())) is None


def test_a_tree_is_all_its_providers(placement: Placement) -> None:
    root = fresh(placement)
    child = fresh(placement, root)
    grandchild = fresh(placement, child)
    fresh(placement)
    assert set(placement.tree(root.uuid)) == {root, child, grandchild}
    assert (grandchild.parent_uuid, grandchild.root_uuid) == (child.uuid, root.uuid)


def test_a_tree_can_be_asked_for_those_with_a_trait(placement: Placement) -> None:
    root = fresh(placement)
    child = fresh(placement, root)
    fresh(placement, root)
    placement.set_traits(child.uuid, child.generation, {OWNER})
    assert [node.uuid for node in placement.tree(root.uuid, OWNER)] == [child.uuid]


@pytest.mark.parametrize('same', ['uuid', 'name'])
def test_a_name_and_a_uuid_are_taken_once(placement: Placement, same: str) -> None:
    made = fresh(placement)
    uuid = made.uuid if same == 'uuid' else str(uuid4())
    name = made.name if same == 'name' else f'provider_{uuid4()}'
    with pytest.raises(ProviderExists):
        placement.create_provider(uuid, name, None)


def test_a_parent_must_be_there(placement: Placement) -> None:
    with pytest.raises(RemoteError):
        placement.create_provider(str(uuid4()), 'orphan', str(uuid4()))


def test_inventories_are_replaced_and_the_generation_grows(
    placement: Placement,
) -> None:
    made = fresh(placement)
    stocked = placement.set_inventories(made.uuid, made.generation, GPUS)
    assert stocked == placement.inventories(made.uuid)
    assert stocked.inventories == GPUS
    assert stocked.generation > made.generation
    emptied = placement.set_inventories(made.uuid, stocked.generation, {})
    assert emptied.inventories == {}


def test_all_of_an_inventory_can_be_reserved(placement: Placement) -> None:
    made = fresh(placement)
    closed = {'PGPU': GPUS['PGPU'].closed}
    stocked = placement.set_inventories(made.uuid, made.generation, closed)
    assert stocked.inventories['PGPU'].reserved == 4


def test_more_than_all_of_an_inventory_cannot(placement: Placement) -> None:
    made = fresh(placement)
    with pytest.raises(RemoteError):
        placement.set_inventories(
            made.uuid, made.generation, {'PGPU': Inventory(1, reserved=2)}
        )


def test_traits_are_replaced_and_the_generation_grows(placement: Placement) -> None:
    made = fresh(placement)
    marked = placement.set_traits(made.uuid, made.generation, {OWNER})
    assert marked == placement.traits(made.uuid)
    assert marked.traits == {OWNER}
    assert marked.generation > made.generation


def test_the_same_traits_again_are_no_change(placement: Placement) -> None:
    made = fresh(placement)
    marked = placement.set_traits(made.uuid, made.generation, {OWNER})
    assert placement.set_traits(made.uuid, marked.generation, {OWNER}) == marked


def test_the_tree_shows_the_generation_of_the_last_change(
    placement: Placement,
) -> None:
    """A sync trusts what it knows of a provider while this number stands still."""
    made = fresh(placement)
    placement.set_traits(made.uuid, made.generation, {OWNER})
    stocked = placement.set_inventories(made.uuid, 1, GPUS)
    (node,) = placement.tree(made.uuid)
    assert node.generation == stocked.generation == 2


def test_who_comes_with_an_old_generation_is_told(placement: Placement) -> None:
    made = fresh(placement)
    placement.set_traits(made.uuid, made.generation, {OWNER})
    with pytest.raises(PlacementConflict):
        placement.set_inventories(made.uuid, made.generation, GPUS)
    with pytest.raises(PlacementConflict):
        placement.set_traits(made.uuid, made.generation, ())


def test_a_provider_that_went_is_a_conflict(placement: Placement) -> None:
    gone = str(uuid4())
    for ask in (placement.inventories, placement.traits, placement.usages):
        with pytest.raises(PlacementConflict):
            ask(gone)
    with pytest.raises(PlacementConflict):
        placement.set_inventories(gone, 0, GPUS)


def test_custom_names_exist_once_they_are_ensured(placement: Placement) -> None:
    made = fresh(placement)
    rare = f'CUSTOM_{uuid4().hex.upper()}'
    with pytest.raises(RemoteError):
        placement.set_traits(made.uuid, made.generation, {rare})
    with pytest.raises(RemoteError):
        placement.set_inventories(made.uuid, made.generation, {rare: Inventory(1)})
    placement.ensure(classes={rare, 'PGPU'}, traits={rare, OWNER})
    marked = placement.set_traits(made.uuid, made.generation, {rare, OWNER})
    placement.set_inventories(made.uuid, marked.generation, {rare: Inventory(1)})


def test_what_is_allocated_to_a_server_is_known(cloud: Cloud) -> None:
    placement = cloud.placement
    made = fresh(placement)
    placement.set_inventories(made.uuid, made.generation, GPUS)
    server = cloud.allocate(made.uuid, {'PGPU': 3})
    assert placement.consumer(server.uuid) == server
    assert server.providers == {made.uuid}
    assert placement.usages(made.uuid) == {'PGPU': 3}


def test_an_allocation_is_another_generation(cloud: Cloud) -> None:
    placement = cloud.placement
    made = fresh(placement)
    stocked = placement.set_inventories(made.uuid, made.generation, GPUS)
    cloud.allocate(made.uuid, {'PGPU': 1})
    assert placement.inventories(made.uuid).generation > stocked.generation


def test_what_is_in_use_stays(cloud: Cloud) -> None:
    placement = cloud.placement
    root = fresh(placement)
    made = fresh(placement, root)
    placement.set_inventories(made.uuid, made.generation, GPUS)
    cloud.allocate(made.uuid, {'PGPU': 1})
    generation = placement.inventories(made.uuid).generation
    with pytest.raises(ProviderInUse):
        placement.delete_provider(made.uuid)
    with pytest.raises(ProviderInUse):
        placement.set_inventories(made.uuid, generation, {})
    with pytest.raises(ProviderInUse):
        placement.delete_provider(root.uuid)


def test_what_is_in_use_can_shrink_below_its_use(cloud: Cloud) -> None:
    placement = cloud.placement
    made = fresh(placement)
    placement.set_inventories(made.uuid, made.generation, GPUS)
    cloud.allocate(made.uuid, {'PGPU': 4})
    generation = placement.inventories(made.uuid).generation
    smaller = {'PGPU': Inventory(1, reserved=1)}
    assert (
        placement.set_inventories(made.uuid, generation, smaller).inventories == smaller
    )


def test_a_provider_is_deleted_once_or_more(placement: Placement) -> None:
    made = fresh(placement)
    placement.delete_provider(made.uuid)
    placement.delete_provider(made.uuid)
    assert placement.provider(made.uuid) is None


def test_a_provider_is_renamed_and_its_name_is_its_own(placement: Placement) -> None:
    root = fresh(placement)
    made, other = fresh(placement, root), fresh(placement, root)
    name = f'renamed-{uuid4()}'
    renamed = placement.rename_provider(made, name)
    assert renamed == placement.provider(made.uuid)
    assert (renamed.name, renamed.parent_uuid) == (name, root.uuid)
    with pytest.raises(ProviderExists):
        placement.rename_provider(other, name)


def test_a_provider_moves_with_all_that_is_below_it(placement: Placement) -> None:
    here, there = fresh(placement), fresh(placement)
    made = fresh(placement, here)
    moved = placement.move_provider(made, made.name, there.uuid)
    assert (moved.parent_uuid, moved.root_uuid) == (there.uuid, there.uuid)
    assert moved in placement.tree(there.uuid)
    assert placement.tree(here.uuid) == (placement.provider(here.uuid),)


def test_a_provider_that_went_is_not_placed(placement: Placement) -> None:
    made = fresh(placement)
    placement.delete_provider(made.uuid)
    with pytest.raises(PlacementConflict):
        placement.rename_provider(made, 'x')


def test_candidates_are_those_that_can_serve_a_group_alone(cloud: Cloud) -> None:
    """The compute node itself has nothing of it: children are found too."""
    placement, rare = cloud.placement, f'CUSTOM_{uuid4().hex.upper()}'
    placement.ensure([rare], [rare])
    root = fresh(placement)
    one, other = fresh(placement, root), fresh(placement, root)
    for node in (one, other):
        stocked = placement.set_inventories(node.uuid, 0, {rare: GPUS['PGPU']})
        if node is one:
            placement.set_traits(node.uuid, stocked.generation, {rare})
    cloud.allocate(one.uuid, {rare: 1})
    assert placement.candidates({rare: 1}, (), ()) == {
        one.uuid: {rare: 3},
        other.uuid: {rare: 4},
    }
    assert placement.candidates({rare: 4}, (), ()).keys() == {other.uuid}
    assert placement.candidates({rare: 1}, {rare}, ()).keys() == {one.uuid}
    assert placement.candidates({rare: 1}, (), {rare}).keys() == {other.uuid}
    assert placement.candidates({rare: 5}, (), ()) == {}
    assert placement.marked({rare}, ()) == {one.uuid}
    assert other.uuid in placement.marked((), {rare})


@pytest.mark.parametrize('name', ['GPU', 'CUSTOM_NEVER_HEARD_OF'])
def test_what_placement_does_not_know_nobody_has(
    placement: Placement, name: str
) -> None:
    assert placement.candidates({name: 1}, (), ()) == {}
    assert placement.candidates({'PGPU': 1}, {name}, ()) == {}
    assert placement.marked({name}, ()) == frozenset()
