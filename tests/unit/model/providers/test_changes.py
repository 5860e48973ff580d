# SPDX-License-Identifier: Apache-2.0
"""Tests of the minimal operations that update providers in Placement."""

from dataclasses import replace

import pytest

from cyborg_lite.model.providers.changes import (
    Closure,
    CreateProvider,
    ProviderDiff,
    SetInventories,
    SetTraits,
    diff_provider,
    list_leftover_providers,
)
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    DesiredProvider,
    ProviderInventory,
    TreeNode,
)

OWNER = 'OWNER_CYBORG'
DESIRED = DesiredProvider(
    uuid='gpu',
    name='host_0000:3b:00.0',
    parent_uuid='root',
    inventories={'PGPU': ProviderInventory(1)},
    traits=frozenset({OWNER, 'CUSTOM_NVIDIA_1EB8'}),
)
ACTUAL = ActualProvider(
    node=TreeNode('gpu', 'host_0000:3b:00.0', 2, 'root', 'root'),
    inventories=DESIRED.inventories,
    traits=DESIRED.traits,
)


def with_traits(*traits: str) -> ActualProvider:
    return replace(ACTUAL, traits=ACTUAL.traits | set(traits))


def node(uuid: str, name: str, parent: str | None = 'root') -> TreeNode:
    return TreeNode(uuid, name, 0, parent, 'root')


def test_diff_provider_missing_creates_with_traits_before_inventory() -> None:
    assert diff_provider(DESIRED, None, ()).operations == (
        CreateProvider('gpu', DESIRED.name, 'root'),
        SetTraits('gpu', DESIRED.traits),
        SetInventories('gpu', DESIRED.inventories),
    )


@pytest.mark.parametrize('is_closed', [False, True])
def test_diff_provider_closes_obsolete_class_in_use(is_closed: bool) -> None:
    old = {'VGPU': ProviderInventory(4, reserved=4)}
    actual = replace(ACTUAL, inventories=old)
    if is_closed:
        actual = replace(ACTUAL, inventories={**old, **DESIRED.inventories})
    (operation,) = diff_provider(DESIRED, actual, ()).operations
    merged = None if is_closed else {**old, **DESIRED.inventories}
    reason = 'resource class VGPU is obsolete, but allocated'
    closure = Closure(merged, reason)
    assert operation == SetInventories('gpu', DESIRED.inventories, closure)


@pytest.mark.parametrize(
    'foreign', ['CUSTOM_RACK_7', 'HW_GPU_API_VULKAN', 'CUSTOM_GPU']
)
def test_diff_provider_preserves_foreign_traits(foreign: str) -> None:
    assert diff_provider(DESIRED, with_traits(foreign), ()) == ProviderDiff()
    changed = replace(DESIRED, traits=frozenset({OWNER}))
    (operation,) = diff_provider(changed, with_traits(foreign), ()).operations
    assert operation == SetTraits('gpu', frozenset({OWNER, foreign}))


@pytest.mark.parametrize(
    'stale',
    [
        'CUSTOM_NVIDIA_20F1',
        'CUSTOM_NVIDIA_1EB8_T4_2B',
        'CUSTOM_PCI_PRODUCT_ID_1EB8',
        'CUSTOM_FPGA_FUNCTION_ID_INTEL_' + 'A1' * 16,
    ],
)
def test_diff_provider_removes_stale_driver_traits(stale: str) -> None:
    (operation,) = diff_provider(DESIRED, with_traits(stale), ()).operations
    assert operation == SetTraits('gpu', DESIRED.traits)


def test_diff_provider_removes_former_traits() -> None:
    desired = replace(DESIRED, former_traits=frozenset({'CUSTOM_PHYSNET1'}))
    actual = with_traits('CUSTOM_PHYSNET1', 'CUSTOM_RACK_7')
    (operation,) = diff_provider(desired, actual, ()).operations
    assert operation == SetTraits('gpu', DESIRED.traits | {'CUSTOM_RACK_7'})


def test_diff_provider_of_nova_returns_problem() -> None:
    actual = replace(ACTUAL, traits=frozenset({'OWNER_NOVA'}), inventories={})
    diff = diff_provider(DESIRED, actual, ())
    assert diff.operations == ()
    assert diff.problem is not None
    assert 'OWNER_NOVA' in diff.problem.reason


def test_diff_provider_name_in_use_returns_problem() -> None:
    actual = replace(ACTUAL, node=replace(ACTUAL.node, name='x'), inventories={})
    diff = diff_provider(DESIRED, actual, [node('foreign', DESIRED.name)])
    assert diff.operations == (SetInventories('gpu', DESIRED.inventories),)
    assert diff.problem is not None


@pytest.mark.parametrize('suffix', ['', '_region0'])
def test_diff_provider_foreign_provider_of_device_returns_problem(suffix: str) -> None:
    desired = replace(DESIRED, name=DESIRED.name + suffix)
    diff = diff_provider(desired, None, [node('foreign', DESIRED.name)])
    assert diff.operations == ()
    assert diff.problem is not None
    assert 'foreign' in diff.problem.reason


def test_diff_provider_foreign_name_prefix_is_no_conflict() -> None:
    diff = diff_provider(DESIRED, None, [node('foreign', 'host_0000:3b:00')])
    assert diff.problem is None


@pytest.mark.parametrize(
    ('name', 'owned'),
    [('host_0000:81:00.0', False), ('other_0000:81:00.0', True), ('hostess_x', True)],
)
def test_leftover_providers_exclude_foreign_providers(name: str, owned: bool) -> None:
    """The provider lacks the owner trait or has the name of another host."""
    tree = [node('root', 'host', None), node('provider', name)]
    assert (
        list_leftover_providers('host', [], tree, {'provider'} if owned else set())
        == ()
    )
