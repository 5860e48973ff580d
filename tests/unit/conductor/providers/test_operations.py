# SPDX-License-Identifier: Apache-2.0
"""Tests of the changes to single providers: their order, generations and problems."""

from dataclasses import replace
from typing import Final

import pytest

from cyborg_lite.conductor.providers.cache import ProviderCache
from cyborg_lite.conductor.providers.operations import ProviderOperations
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    DesiredProvider,
    ProviderInventory,
    TreeNode,
    build_root,
)
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG
from tests.doubles.placement import FakePlacement

GPU: Final = 'uuid-of-the-gpu'
SECOND: Final = 'uuid-of-the-second'
INVENTORY: Final = {'PGPU': ProviderInventory(4, max_unit=4)}
REJECTED: Final = RemoteError(service='Placement', status=400, reason='bad name')


@pytest.fixture
def placement() -> FakePlacement:
    return FakePlacement()


@pytest.fixture
def root(placement: FakePlacement) -> TreeNode:
    return placement.create_provider('root', 'compute-1', None)


@pytest.fixture
def operations(placement: FakePlacement) -> ProviderOperations:
    return ProviderOperations(placement, ProviderCache())


@pytest.fixture
def provider(root: TreeNode) -> DesiredProvider:
    traits = frozenset({OWNER_CYBORG, 'CUSTOM_NVIDIA_1EB8'})
    return DesiredProvider(GPU, 'compute-1_gpu', root.uuid, INVENTORY, traits)


@pytest.fixture
def node(
    placement: FakePlacement, operations: ProviderOperations, provider: DesiredProvider
) -> TreeNode:
    """Return the provider as desired in Placement."""
    (created,) = operations.create_providers([provider])
    operations.update_provider(provider, created)
    operations.fill_created()
    operations.changes.clear()
    placement.calls.clear()
    return placement.providers[GPU].node


def descriptions(operations: ProviderOperations) -> list[str]:
    return [change.description for change in operations.changes]


def reasons(operations: ProviderOperations) -> list[str]:
    return [problem.reason for problem in operations.problems]


# --- create and update ----------------------------------------------------------------


def test_update_new_provider_sets_traits_before_inventories(
    placement: FakePlacement, operations: ProviderOperations, provider: DesiredProvider
) -> None:
    """Placement could choose a provider with inventories, but without its traits."""
    (created,) = operations.create_providers([provider])
    operations.update_provider(provider, created)
    assert placement.providers[GPU].inventories == {}
    operations.fill_created()
    assert descriptions(operations) == [
        'created',
        f'traits +CUSTOM_NVIDIA_1EB8 +{OWNER_CYBORG}',
        'inventory PGPU 4 (0 reserved), was empty',
    ]
    assert operations.created_uuids == {GPU}
    assert placement.providers[GPU].inventories == INVENTORY


@pytest.fixture
def pair(
    operations: ProviderOperations, provider: DesiredProvider
) -> tuple[DesiredProvider, DesiredProvider]:
    """Return two new providers that have traits and no inventories."""
    second = replace(provider, uuid=SECOND, name='compute-1_second')
    for desired in (provider, second):
        (node,) = operations.create_providers([desired])
        operations.update_provider(desired, node)
    return provider, second


@pytest.mark.parametrize(
    ('refuses', 'calls'),
    [
        (False, ['POST /reshaper']),
        (True, [f'PUT /resource_providers/{n}/inventories' for n in (GPU, SECOND)]),
    ],
)
def test_fill_created_sends_one_request_unless_refused(
    placement: FakePlacement,
    operations: ProviderOperations,
    pair: tuple[DesiredProvider, DesiredProvider],
    refuses: bool,
    calls: list[str],
) -> None:
    placement.refuses_reshape = refuses
    placement.calls.clear()
    operations.fill_created()
    operations.fill_created()
    assert placement.calls == calls
    for desired in pair:
        node = placement.providers[desired.uuid].node
        cached = operations.find_cached(node)
        assert cached == ActualProvider(node, INVENTORY, desired.traits)
    text = 'inventory PGPU 4 (0 reserved), was empty'
    assert descriptions(operations)[-2:] == [text, text]


def test_fill_created_changed_provider_restarts_attempt(
    placement: FakePlacement,
    operations: ProviderOperations,
    pair: tuple[DesiredProvider, DesiredProvider],
) -> None:
    placement.providers[SECOND].touch()
    with pytest.raises(PlacementConflict):
        operations.fill_created()
    assert [placement.providers[item.uuid].inventories for item in pair] == [{}, {}]


def test_fill_created_rejected_inventory_does_not_stop_others(
    placement: FakePlacement, operations: ProviderOperations, provider: DesiredProvider
) -> None:
    odd = {'NO_SUCH_CLASS': ProviderInventory(1)}
    second = replace(provider, uuid=SECOND, name='compute-1_2', inventories=odd)
    for desired in (second, provider):
        (node,) = operations.create_providers([desired])
        operations.update_provider(desired, node)
    operations.fill_created()
    assert placement.providers[GPU].inventories == INVENTORY
    assert placement.providers[SECOND].inventories == {}
    (problem,) = operations.problems
    assert (problem.uuid, problem.name) == (SECOND, 'compute-1_2')
    assert operations.last_error is not None


def test_update_unchanged_provider_sends_nothing(
    placement: FakePlacement,
    operations: ProviderOperations,
    provider: DesiredProvider,
    node: TreeNode,
) -> None:
    operations.update_provider(provider, node)
    assert (placement.calls, operations.changes) == ([], [])


def test_update_fence_raises_generation_once(
    placement: FakePlacement, provider: DesiredProvider, node: TreeNode
) -> None:
    fenced = ProviderOperations(placement, ProviderCache(), fence=True)
    fenced.update_provider(provider, node)
    assert placement.providers[GPU].node.generation == node.generation + 1
    assert fenced.changes == []
    current = placement.providers[GPU].node
    placement.calls.clear()
    fenced.update_provider(replace(provider, traits=frozenset({OWNER_CYBORG})), current)
    assert len(placement.writes) == 1


def test_create_rejected_provider_does_not_stop_others(
    placement: FakePlacement, operations: ProviderOperations, provider: DesiredProvider
) -> None:
    second = replace(provider, uuid='second', name='compute-1_second')
    placement.errors = [REJECTED]
    assert [node.uuid for node in operations.create_providers([provider, second])] == [
        'second'
    ]
    operations.update_provider(provider, None)
    assert reasons(operations) == [REJECTED.text]
    assert operations.last_error is REJECTED
    operations.begin([])
    assert operations.problems == []
    assert operations.last_error is None


def test_create_name_of_foreign_provider_is_problem(
    placement: FakePlacement,
    operations: ProviderOperations,
    provider: DesiredProvider,
    root: TreeNode,
) -> None:
    """The namesake is in another tree, so it is not in the list of foreign ones."""
    placement.create_provider('namesake', provider.name, None)
    assert operations.create_providers([provider]) == []
    operations.update_provider(provider, None)
    assert reasons(operations) == ['provider namesake has its name']
    assert operations.last_error is None


def test_create_foreign_provider_of_card_is_not_requested(
    placement: FakePlacement,
    operations: ProviderOperations,
    provider: DesiredProvider,
    root: TreeNode,
) -> None:
    operations.begin([TreeNode('nova', provider.name, 0, root.uuid, root.uuid)])
    placement.calls.clear()
    assert operations.create_providers([provider]) == []
    assert placement.calls == []


def test_create_provider_of_other_tree_restarts_attempt(
    placement: FakePlacement, operations: ProviderOperations, provider: DesiredProvider
) -> None:
    placement.create_provider('elsewhere', 'compute-9', None)
    placement.create_provider(GPU, provider.name, 'elsewhere')
    with pytest.raises(PlacementConflict):
        operations.create_providers([provider])
    assert operations.outside_uuids == {GPU}
    # The next attempt has read the provider, so the same position is no news.
    assert operations.create_providers([provider]) == []


def test_update_rejected_class_is_problem(
    placement: FakePlacement,
    operations: ProviderOperations,
    provider: DesiredProvider,
    node: TreeNode,
) -> None:
    changed = replace(provider, inventories={'PGPU': ProviderInventory(9)})
    placement.errors = [REJECTED]
    operations.update_provider(changed, node)
    assert reasons(operations) == [REJECTED.text]
    assert operations.last_error is REJECTED


def test_update_class_in_use_is_reserved(
    placement: FakePlacement,
    operations: ProviderOperations,
    provider: DesiredProvider,
    node: TreeNode,
) -> None:
    placement.allocate(GPU, {'PGPU': 1})
    vgpus = {'VGPU': ProviderInventory(8)}
    changed = replace(provider, inventories=vgpus)
    operations.invalidate_cache([node])
    for _ in range(2):
        operations.begin([])
        operations.update_provider(changed, placement.providers[GPU].node)
        assert reasons(operations) == ['resource class PGPU is obsolete, but allocated']
    closed = {'PGPU': INVENTORY['PGPU'].fully_reserved}
    assert placement.providers[GPU].inventories == closed | vgpus
    assert len(operations.changes) == 1


# --- read -----------------------------------------------------------------------------


def test_read_newer_generation_restarts_attempt(
    placement: FakePlacement, operations: ProviderOperations, node: TreeNode
) -> None:
    """The rows are older than the generation, so a write could undo a newer sync."""
    placement.providers[GPU].touch()
    operations.invalidate_cache([node])
    with pytest.raises(PlacementConflict):
        operations.read(node)
    current = placement.providers[GPU].node
    assert operations.find_cached(current) == operations.read(current)


# --- move -----------------------------------------------------------------------------


@pytest.fixture
def shelf(placement: FakePlacement, node: TreeNode) -> TreeNode:
    """Move the provider below another one, and return it as read."""
    placement.create_provider('shelf', 'compute-1_shelf', 'root')
    placement.move_provider(node, node.name, 'shelf')
    placement.calls.clear()
    return placement.providers[GPU].node


def test_update_misplaced_provider_is_moved(
    operations: ProviderOperations,
    provider: DesiredProvider,
    shelf: TreeNode,
    placement: FakePlacement,
) -> None:
    operations.update_provider(provider, shelf)
    assert placement.providers[GPU].node.parent_uuid == 'root'
    assert descriptions(operations) == ['was below shelf']
    assert reasons(operations) == []


@pytest.mark.parametrize(
    ('obstacle', 'reason'),
    [
        ('allocation', 'it has allocations'),
        ('child', 'it has child providers'),
        ('old', 'does not support microversion 1.37'),
    ],
)
@pytest.mark.usefixtures('shelf')
def test_update_immovable_provider_is_left(
    operations: ProviderOperations,
    provider: DesiredProvider,
    placement: FakePlacement,
    obstacle: str,
    reason: str,
) -> None:
    if obstacle == 'allocation':
        placement.allocate(GPU, {'PGPU': 1})
    elif obstacle == 'child':
        placement.create_provider('child', 'compute-1_gpu_part', GPU)
    placement.is_old = obstacle == 'old'
    changed = replace(provider, traits=frozenset({OWNER_CYBORG}))
    current = placement.providers[GPU].node
    operations.invalidate_cache([current])
    operations.update_provider(changed, current)
    (problem,) = reasons(operations)
    assert problem.startswith('its parent is shelf; it cannot be moved')
    assert reason in problem
    assert operations.changes == []


def test_update_name_taken_meanwhile_is_problem(
    operations: ProviderOperations,
    provider: DesiredProvider,
    node: TreeNode,
    placement: FakePlacement,
) -> None:
    renamed = placement.rename_provider(node, 'former')
    placement.create_provider('namesake', provider.name, 'root')
    operations.update_provider(provider, renamed)
    assert reasons(operations) == ['provider namesake has its name']


# --- removal --------------------------------------------------------------------------


def test_empty_provider_keeps_foreign_traits(
    operations: ProviderOperations, node: TreeNode, placement: FakePlacement
) -> None:
    provider = placement.providers[GPU]
    provider.traits |= {'CUSTOM_RACK_7', 'CUSTOM_PHYSNET1'}
    operations.invalidate_cache([node])
    operations.empty_provider(node, lambda: ['CUSTOM_PHYSNET1'])
    assert provider.inventories == {}
    assert provider.traits == {OWNER_CYBORG, EMPTIED, 'CUSTOM_RACK_7'}
    placement.calls.clear()
    operations.empty_provider(provider.node, list)
    assert placement.writes == []


@pytest.mark.parametrize('empties', [True, False])
def test_remove_allocated_provider_closes_it(
    operations: ProviderOperations,
    node: TreeNode,
    placement: FakePlacement,
    empties: bool,
) -> None:
    placement.allocate(GPU, {'PGPU': 1})
    current = placement.providers[GPU].node
    operations.invalidate_cache([current])
    if empties:
        operations.empty_provider(current, list)
    else:
        operations.delete_provider(current)
    assert placement.providers[GPU].inventories['PGPU'].reserved == 4
    assert EMPTIED not in placement.providers[GPU].traits
    assert 'removed, but allocated' in reasons(operations)[0]


def test_delete_provider_demands_generation(
    operations: ProviderOperations, node: TreeNode, placement: FakePlacement
) -> None:
    """DELETE itself demands none, so a returned device could lose its provider."""
    placement.providers[GPU].touch()
    with pytest.raises(PlacementConflict):
        operations.delete_provider(node)
    assert GPU in placement.providers
    operations.invalidate_cache([node])
    operations.delete_provider(placement.providers[GPU].node)
    assert GPU not in placement.providers
    assert operations.deleted_uuids == {GPU}


def test_delete_provider_with_child_empties_it(
    operations: ProviderOperations, node: TreeNode, placement: FakePlacement
) -> None:
    placement.create_provider('child', 'compute-1_gpu_part', GPU)
    operations.delete_provider(node)
    assert placement.providers[GPU].inventories == {}
    assert operations.deleted_uuids == set()
    cached = operations.find_cached(placement.providers[GPU].node)
    assert cached is not None
    assert cached.inventories == {}


@pytest.mark.parametrize('is_own', [True, False])
def test_withdraw_provider_deletes_own_provider_only(
    operations: ProviderOperations,
    provider: DesiredProvider,
    node: TreeNode,
    placement: FakePlacement,
    is_own: bool,
) -> None:
    if not is_own:
        placement.providers[GPU].traits = frozenset()
    operations.invalidate_cache([node])
    operations.withdraw_provider(provider, node, 'Nova has it')
    assert (GPU in placement.providers) is not is_own
    (problem,) = operations.problems
    assert (problem.reason, problem.standing) == ('Nova has it', True)


# --- roots ----------------------------------------------------------------------------


def test_ensure_root_creates_or_renames(
    operations: ProviderOperations, placement: FakePlacement
) -> None:
    desired_root = build_root('edge-1')
    created = operations.ensure_root(desired_root)
    placement.rename_provider(created, 'misnamed')
    assert operations.ensure_root(desired_root).name == 'edge-1'
    assert descriptions(operations) == ['created', 'was named misnamed']


def test_ensure_root_name_taken_restarts_attempt(
    operations: ProviderOperations, placement: FakePlacement
) -> None:
    placement.create_provider('of-nova', 'edge-1', None)
    with pytest.raises(PlacementConflict):
        operations.ensure_root(build_root('edge-1'))


def test_mark_owned_adds_trait_once(
    operations: ProviderOperations, placement: FakePlacement, root: TreeNode
) -> None:
    placement.providers['root'].traits = frozenset({'HW_GPU_API'})
    for _ in range(2):
        operations.mark_owned(placement.providers['root'].node)
    assert placement.providers['root'].traits == {'HW_GPU_API', OWNER_CYBORG}
    assert len(operations.changes) == 1
