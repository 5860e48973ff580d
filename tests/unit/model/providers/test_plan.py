# SPDX-License-Identifier: Apache-2.0
"""Tests of the plan of a sync: which operations, in which order."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from cyborg_lite.model.providers.changes import (
    Closure,
    CreateProvider,
    DeleteProvider,
    HostFacts,
    MoveProvider,
    SetInventories,
    SyncPlan,
    build_host_tree,
    plan_sync,
)
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    ProviderInventory,
    ProviderRow,
    TreeNode,
)
from cyborg_lite.model.traits import OWNER_CYBORG

HOST: Final = 'host'
INVENTORY: Final = {'PGPU': ProviderInventory(1)}
TRAITS: Final = frozenset({OWNER_CYBORG, 'CUSTOM_A'})
CLOSURE: Final = Closure(
    {'PGPU': ProviderInventory(1, reserved=1)},
    'the device is removed, but allocated; its provider is closed',
)
ROW: Final = ProviderRow(
    'gpu', 'host_gpu', 'PGPU', ('CUSTOM_A',), 1, 0, ('CUSTOM_A',), 'device-gpu'
)
FACTS: Final = HostFacts({}, {}, {}, {}, deletes_leftovers=False, owns_root=False)


def node(uuid: str, name: str, parent: str | None = 'root') -> TreeNode:
    return TreeNode(uuid, name, 0, parent, 'root')


def plan(
    nodes: Mapping[str, str] = {},  # never changed
    *rows: ProviderRow,
    root: str = 'root',
    owned: tuple[str, ...] = (),
    facts: HostFacts = FACTS,
    fence: bool = False,
) -> SyncPlan:
    """Plan the sync of a host whose providers have the same traits and inventories.

    :param nodes: names by uuid
    """
    tree = [node(uuid, name) for uuid, name in nodes.items()]
    host = build_host_tree(HOST, root, [node(root, HOST, None), *tree], rows, owned)
    actual = {item.uuid: ActualProvider(item, INVENTORY, TRAITS) for item in tree}
    facts = replace(facts, actual={**actual, **facts.actual})
    return plan_sync(host, facts, fence=fence)


def test_plan_up_to_date_is_empty() -> None:
    result = plan({'gpu': 'host_gpu', 'nova': 'host_numa'}, ROW)
    assert result == SyncPlan((), (), (), {}, {})


def test_plan_fence_writes_every_own_provider() -> None:
    result = plan({'gpu': 'host_gpu', 'nova': 'host_numa'}, ROW, fence=True)
    assert result.updates == (SetInventories('gpu', INVENTORY),)


def test_plan_removed_device_is_closed_once() -> None:
    assert CLOSURE.inventories is not None
    closed = ActualProvider(node('old', 'host_old'), CLOSURE.inventories, TRAITS)
    facts = replace(FACTS, actual={'old': closed})
    for fence, inventories in ((False, None), (True, CLOSURE.inventories)):
        result = plan({'old': 'host_old'}, owned=('old',), facts=facts, fence=fence)
        closure = replace(CLOSURE, inventories=inventories)
        assert result.updates[0] == SetInventories('old', {}, closure)


def test_plan_leftover_with_new_name_is_deleted_first() -> None:
    result = plan({'old': 'host_GPU_region0'}, ROW, owned=('old',))
    assert result.creations == (
        DeleteProvider('old', CLOSURE),
        CreateProvider('gpu', 'host_gpu', 'root'),
    )


def test_plan_leftover_with_foreign_name_is_deleted() -> None:
    nodes = {'old': 'host_old', 'nova': 'host_OLD'}
    result = plan(nodes, owned=('old',))
    assert result.updates == (DeleteProvider('old', CLOSURE),)


@pytest.mark.parametrize('is_own', [True, False])
def test_plan_contested_device_withdraws_own_provider_only(is_own: bool) -> None:
    actual = ActualProvider(
        node('gpu', 'host_gpu'), INVENTORY, TRAITS if is_own else frozenset()
    )
    facts = replace(FACTS, actual={'gpu': actual}, conflicts={'device-gpu': 'Nova'})
    result = plan({'gpu': 'host_gpu'}, ROW, facts=facts)
    closure = replace(CLOSURE, reason='')
    assert result.updates == ((DeleteProvider('gpu', closure),) if is_own else ())
    (problem,) = result.problems
    assert (problem.reason, problem.standing) == ('Nova', True)
    assert result.new_conflicts == {'device-gpu': 'Nova'}


def test_plan_ended_conflict_is_recorded() -> None:
    result = plan({'gpu': 'host_gpu'}, replace(ROW, conflict='Nova'))
    assert (result.problems, result.new_conflicts) == ((), {'device-gpu': ''})


def test_plan_obstacle_of_misplaced_provider_is_problem() -> None:
    actual = ActualProvider(node('gpu', 'host_gpu', 'elsewhere'), INVENTORY, TRAITS)
    for obstacle in ('', 'it has allocations'):
        facts = replace(FACTS, actual={'gpu': actual}, obstacles={'gpu': obstacle})
        result = plan({'gpu': 'host_gpu'}, ROW, facts=facts)
        moved = MoveProvider('gpu', 'host_gpu', 'root')
        assert result.updates == (() if obstacle else (moved,))
        assert bool(result.problems) is bool(obstacle)
