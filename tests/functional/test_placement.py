# SPDX-License-Identifier: Apache-2.0
"""Behaviour of Placement that the product relies on; the fake passes the same tests."""

from collections.abc import Mapping
from typing import Protocol
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import (
    Consumer,
    Placement,
    ProviderInventories,
)
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.errors.providers import (
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
)
from cyborg_lite.model.providers.providers import ProviderInventory, TreeNode
from cyborg_lite.model.traits import OWNER_CYBORG, OWNER_NOVA
from tests.doubles.placement import FakePlacement
from tests.servers.placement import CountedRemote, remote

__all__ = ['remote']


class Cloud(Protocol):
    """Placement with a scheduler that allocates."""

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


GPUS = {'PGPU': ProviderInventory(4, max_unit=4)}


def test_find_provider_by_uuid_and_name(placement: Placement) -> None:
    node = fresh(placement)
    assert placement.find_provider(node.uuid) == node
    assert placement.find_provider_by_name(node.name) == node
    assert (node.parent_uuid, node.root_uuid) == (None, node.uuid)


def test_find_provider_unknown_returns_none(placement: Placement) -> None:
    assert placement.find_provider(str(uuid4())) is None
    assert placement.find_provider_by_name('nobody') is None
    assert placement.list_tree(str(uuid4())) == ()
    assert placement.find_consumer(str(uuid4())) is None


def test_list_tree_returns_all_providers(placement: Placement) -> None:
    root = fresh(placement)
    child = fresh(placement, root)
    grandchild = fresh(placement, child)
    fresh(placement)
    assert set(placement.list_tree(root.uuid)) == {root, child, grandchild}
    assert (grandchild.parent_uuid, grandchild.root_uuid) == (child.uuid, root.uuid)


def test_list_tree_filters_by_trait(placement: Placement) -> None:
    root = fresh(placement)
    child = fresh(placement, root)
    fresh(placement, root)
    placement.set_traits(child.uuid, child.generation, {OWNER_CYBORG})
    assert [node.uuid for node in placement.list_tree(root.uuid, OWNER_CYBORG)] == [
        child.uuid
    ]


def test_list_names_with_trait_filters_by_name(placement: Placement) -> None:
    first, second = fresh(placement), fresh(placement)
    for node in (first, second):
        placement.set_traits(node.uuid, node.generation, {OWNER_NOVA})
    names = placement.list_names_with_trait(OWNER_NOVA)
    assert {first.name, second.name} <= names
    assert placement.list_names_with_trait(OWNER_NOVA, first.name) == {first.name}
    assert placement.list_names_with_trait('CUSTOM_NEVER_MADE') == frozenset()
    nodes = placement.list_providers(OWNER_NOVA)
    assert {first.uuid, second.uuid} <= {node.uuid for node in nodes}
    assert placement.list_providers('CUSTOM_NEVER_MADE') == ()


def test_list_hosts_with_trait_names_roots(placement: Placement) -> None:
    root = fresh(placement)
    child = placement.create_provider(str(uuid4()), f'{root.name}_gpu', root.uuid)
    assert root.name not in placement.list_hosts_with_trait(OWNER_NOVA)
    placement.set_traits(child.uuid, child.generation, {OWNER_NOVA})
    hosts = placement.list_hosts_with_trait(OWNER_NOVA)
    assert root.name in hosts
    assert child.name not in hosts


@pytest.mark.parametrize('name_or_uuid', ['uuid', 'name'])
def test_create_provider_name_or_uuid_in_use_raises(
    placement: Placement, name_or_uuid: str
) -> None:
    node = fresh(placement)
    uuid = node.uuid if name_or_uuid == 'uuid' else str(uuid4())
    name = node.name if name_or_uuid == 'name' else f'provider_{uuid4()}'
    with pytest.raises(ProviderExists):
        placement.create_provider(uuid, name, None)


def test_create_provider_unknown_parent_raises(placement: Placement) -> None:
    with pytest.raises(RemoteError):
        placement.create_provider(str(uuid4()), 'orphan', str(uuid4()))


def test_set_inventories_replaces_and_increments_generation(
    placement: Placement,
) -> None:
    node = fresh(placement)
    stocked = placement.set_inventories(node.uuid, node.generation, GPUS)
    assert stocked == placement.get_inventories(node.uuid)
    assert stocked.inventories == GPUS
    assert stocked.generation > node.generation
    emptied = placement.set_inventories(node.uuid, stocked.generation, {})
    assert emptied.inventories == {}


def test_set_inventories_may_reserve_everything(placement: Placement) -> None:
    node = fresh(placement)
    closed = {'PGPU': GPUS['PGPU'].fully_reserved}
    stocked = placement.set_inventories(node.uuid, node.generation, closed)
    assert stocked.inventories['PGPU'].reserved == 4


def test_set_inventories_reserve_above_total_raises(placement: Placement) -> None:
    node = fresh(placement)
    with pytest.raises(RemoteError):
        placement.set_inventories(
            node.uuid, node.generation, {'PGPU': ProviderInventory(1, reserved=2)}
        )


def test_fill_providers_sets_all_and_returns_generations(placement: Placement) -> None:
    nodes = [fresh(placement), fresh(placement)]
    targets = {node.uuid: ProviderInventories(node.generation, GPUS) for node in nodes}
    generations = placement.fill_providers(targets)
    assert generations is not None
    for node in nodes:
        stored = placement.get_inventories(node.uuid)
        assert stored == ProviderInventories(generations[node.uuid], GPUS)
    with pytest.raises(PlacementConflict):
        placement.fill_providers(targets)


@pytest.mark.parametrize('flaw', ['class', 'provider'])
def test_fill_providers_refused_changes_none(placement: Placement, flaw: str) -> None:
    node, second = fresh(placement), fresh(placement)
    unknown = {f'CUSTOM_{uuid4().hex.upper()}': ProviderInventory(1)}
    uuid = str(uuid4()) if flaw == 'provider' else second.uuid
    inventories = unknown if flaw == 'class' else GPUS
    targets = {
        node.uuid: ProviderInventories(node.generation, GPUS),
        uuid: ProviderInventories(second.generation, inventories),
    }
    assert placement.fill_providers(targets) is None
    assert placement.get_inventories(node.uuid).inventories == {}


def test_set_traits_replaces_and_increments_generation(placement: Placement) -> None:
    node = fresh(placement)
    marked = placement.set_traits(node.uuid, node.generation, {OWNER_CYBORG})
    assert marked == placement.get_traits(node.uuid)
    assert marked.traits == {OWNER_CYBORG}
    assert marked.generation > node.generation


def test_set_traits_unchanged_keeps_generation(placement: Placement) -> None:
    node = fresh(placement)
    marked = placement.set_traits(node.uuid, node.generation, {OWNER_CYBORG})
    assert placement.set_traits(node.uuid, marked.generation, {OWNER_CYBORG}) == marked


def test_list_tree_returns_latest_generation(placement: Placement) -> None:
    """The cache of a sync is valid while this number does not change."""
    node = fresh(placement)
    placement.set_traits(node.uuid, node.generation, {OWNER_CYBORG})
    stocked = placement.set_inventories(node.uuid, 1, GPUS)
    (node,) = placement.list_tree(node.uuid)
    assert node.generation == stocked.generation == 2


def test_write_with_old_generation_raises_conflict(placement: Placement) -> None:
    node = fresh(placement)
    placement.set_traits(node.uuid, node.generation, {OWNER_CYBORG})
    with pytest.raises(PlacementConflict):
        placement.set_inventories(node.uuid, node.generation, GPUS)
    with pytest.raises(PlacementConflict):
        placement.set_traits(node.uuid, node.generation, ())


def test_write_deleted_provider_raises_conflict(placement: Placement) -> None:
    deleted_uuid = str(uuid4())
    for read in (placement.get_inventories, placement.get_traits, placement.get_usages):
        with pytest.raises(PlacementConflict):
            read(deleted_uuid)
    with pytest.raises(PlacementConflict):
        placement.set_inventories(deleted_uuid, 0, GPUS)


def test_custom_names_exist_after_creation(placement: Placement) -> None:
    node = fresh(placement)
    rare = f'CUSTOM_{uuid4().hex.upper()}'
    with pytest.raises(RemoteError):
        placement.set_traits(node.uuid, node.generation, {rare})
    with pytest.raises(RemoteError):
        placement.set_inventories(
            node.uuid, node.generation, {rare: ProviderInventory(1)}
        )
    placement.create_custom_names(classes={rare, 'PGPU'}, traits={rare, OWNER_CYBORG})
    marked = placement.set_traits(node.uuid, node.generation, {rare, OWNER_CYBORG})
    placement.set_inventories(
        node.uuid, marked.generation, {rare: ProviderInventory(1)}
    )


def test_delete_resource_class_only_if_unused(placement: Placement) -> None:
    used, unused = (f'CUSTOM_{uuid4().hex.upper()}' for _ in range(2))
    placement.create_custom_names([used, unused], ())
    node = placement.create_provider(str(uuid4()), str(uuid4()), None)
    target = {used: ProviderInventory(1)}
    placement.set_inventories(node.uuid, node.generation, target)
    assert {used, unused} <= placement.list_custom_classes()
    assert 'VCPU' not in placement.list_custom_classes()
    assert placement.delete_resource_class(used) is False
    assert placement.delete_resource_class(unused) is True
    assert placement.delete_resource_class(unused) is True
    assert {used, unused} & placement.list_custom_classes() == {used}
    placement.create_custom_names([unused], ())
    assert unused in placement.list_custom_classes()


def test_delete_trait_only_if_unused(placement: Placement) -> None:
    node = fresh(placement)
    used, unused = (f'CUSTOM_{uuid4().hex.upper()}' for _ in range(2))
    placement.create_custom_names((), {used, unused})
    placement.set_traits(node.uuid, node.generation, {used})
    assert {used, unused} & placement.list_unused_traits() == {unused}
    assert placement.delete_trait(used) is False
    assert placement.delete_trait(unused) is True
    assert placement.delete_trait(unused) is True
    assert unused not in placement.list_unused_traits()
    placement.create_custom_names((), {unused})
    assert unused in placement.list_unused_traits()


def test_allocation_of_consumer_is_returned(cloud: Cloud) -> None:
    placement = cloud.placement
    node = fresh(placement)
    placement.set_inventories(node.uuid, node.generation, GPUS)
    server = cloud.allocate(node.uuid, {'PGPU': 3})
    assert placement.find_consumer(server.uuid) == server
    assert server.providers == {node.uuid}
    assert placement.get_usages(node.uuid) == {'PGPU': 3}


def test_allocation_increments_generation(cloud: Cloud) -> None:
    placement = cloud.placement
    node = fresh(placement)
    stocked = placement.set_inventories(node.uuid, node.generation, GPUS)
    cloud.allocate(node.uuid, {'PGPU': 1})
    assert placement.get_inventories(node.uuid).generation > stocked.generation


def test_each_allocation_raises_listed_generation(cloud: Cloud) -> None:
    """The audit reads only providers whose generation has changed."""
    placement = cloud.placement
    node = fresh(placement)
    traits = placement.set_traits(node.uuid, node.generation, {OWNER_CYBORG})
    placement.set_inventories(node.uuid, traits.generation, GPUS)
    generations = []
    for _ in range(3):
        nodes = placement.list_providers(OWNER_CYBORG)
        generations += [item.generation for item in nodes if item.uuid == node.uuid]
        cloud.allocate(node.uuid, {'PGPU': 1})
    assert generations == sorted(set(generations))
    assert len(generations) == 3


def test_shrink_consumer_keeps_other_providers(cloud: Cloud) -> None:
    placement = cloud.placement
    nodes = [fresh(placement), fresh(placement)]
    for node in nodes:
        placement.set_inventories(node.uuid, node.generation, GPUS)
    consumer = cloud.allocate(nodes[0].uuid, {'PGPU': 2})
    stored = placement.find_consumer(consumer.uuid)
    assert stored is not None
    assert placement.shrink_consumer(stored, nodes[1].uuid)
    # The consumer has another generation now.
    assert not placement.shrink_consumer(stored, nodes[0].uuid)
    latest = placement.find_consumer(consumer.uuid)
    assert latest is not None
    assert latest.allocations == {nodes[0].uuid: {'PGPU': 2}}
    assert placement.shrink_consumer(latest, nodes[0].uuid)
    assert placement.find_consumer(consumer.uuid) is None


def test_delete_in_use_raises(cloud: Cloud) -> None:
    placement = cloud.placement
    root = fresh(placement)
    node = fresh(placement, root)
    placement.set_inventories(node.uuid, node.generation, GPUS)
    cloud.allocate(node.uuid, {'PGPU': 1})
    generation = placement.get_inventories(node.uuid).generation
    with pytest.raises(ProviderInUse):
        placement.delete_provider(node.uuid)
    with pytest.raises(ProviderInUse):
        placement.set_inventories(node.uuid, generation, {})
    with pytest.raises(ProviderInUse):
        placement.delete_provider(root.uuid)


def test_inventory_in_use_can_shrink_below_usage(cloud: Cloud) -> None:
    placement = cloud.placement
    node = fresh(placement)
    placement.set_inventories(node.uuid, node.generation, GPUS)
    cloud.allocate(node.uuid, {'PGPU': 4})
    generation = placement.get_inventories(node.uuid).generation
    smaller = {'PGPU': ProviderInventory(1, reserved=1)}
    assert (
        placement.set_inventories(node.uuid, generation, smaller).inventories == smaller
    )


def test_delete_provider_is_idempotent(placement: Placement) -> None:
    node = fresh(placement)
    placement.delete_provider(node.uuid)
    placement.delete_provider(node.uuid)
    assert placement.find_provider(node.uuid) is None


def test_rename_provider_to_used_name_raises(placement: Placement) -> None:
    root = fresh(placement)
    node, second = fresh(placement, root), fresh(placement, root)
    name = f'renamed-{uuid4()}'
    renamed = placement.rename_provider(node, name)
    assert renamed == placement.find_provider(node.uuid)
    assert (renamed.name, renamed.parent_uuid) == (name, root.uuid)
    with pytest.raises(ProviderExists):
        placement.rename_provider(second, name)


def test_move_provider_moves_its_subtree(placement: Placement) -> None:
    source, target = fresh(placement), fresh(placement)
    node = fresh(placement, source)
    moved = placement.move_provider(node, node.name, target.uuid)
    assert (moved.parent_uuid, moved.root_uuid) == (target.uuid, target.uuid)
    assert moved in placement.list_tree(target.uuid)
    assert placement.list_tree(source.uuid) == (placement.find_provider(source.uuid),)


def test_move_deleted_provider_raises(placement: Placement) -> None:
    node = fresh(placement)
    placement.delete_provider(node.uuid)
    with pytest.raises(PlacementConflict):
        placement.rename_provider(node, 'x')


def test_candidates_serve_a_group_alone(cloud: Cloud) -> None:
    """Providers below the compute node are candidates, too."""
    placement, rare = cloud.placement, f'CUSTOM_{uuid4().hex.upper()}'
    placement.create_custom_names([rare], [rare])
    root = fresh(placement)
    first, second = fresh(placement, root), fresh(placement, root)
    for node in (first, second):
        stocked = placement.set_inventories(node.uuid, 0, {rare: GPUS['PGPU']})
        if node is first:
            placement.set_traits(node.uuid, stocked.generation, {rare})
    cloud.allocate(first.uuid, {rare: 1})
    assert placement.list_candidates({rare: 1}, (), ()) == {
        first.uuid: {rare: 3},
        second.uuid: {rare: 4},
    }
    assert placement.list_candidates({rare: 4}, (), ()).keys() == {second.uuid}
    assert placement.list_candidates({rare: 1}, {rare}, ()).keys() == {first.uuid}
    assert placement.list_candidates({rare: 1}, (), {rare}).keys() == {second.uuid}
    assert placement.list_candidates({rare: 5}, (), ()) == {}
    assert placement.list_providers_with_traits({rare}, ()) == {first.uuid}
    assert second.uuid in placement.list_providers_with_traits((), {rare})


@pytest.mark.parametrize('name', ['GPU', 'CUSTOM_NEVER_HEARD_OF'])
def test_candidates_unknown_name_returns_none(placement: Placement, name: str) -> None:
    assert placement.list_candidates({name: 1}, (), ()) == {}
    assert placement.list_candidates({'PGPU': 1}, {name}, ()) == {}
    assert placement.list_providers_with_traits({name}, ()) == frozenset()
