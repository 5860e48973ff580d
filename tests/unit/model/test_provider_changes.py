# SPDX-License-Identifier: Apache-2.0
"""The fewest operations, and hands off what is not ours."""

from dataclasses import replace

import pytest

from cyborg_lite.model.provider_changes import (
    Create,
    Difference,
    Place,
    SetInventories,
    SetTraits,
    difference,
    leftovers,
)
from cyborg_lite.model.providers import (
    ActualProvider,
    Inventory,
    TreeNode,
    WantedProvider,
)

OWNER = 'OWNER_CYBORG'
WANTED = WantedProvider(
    uuid='gpu',
    name='host_0000:3b:00.0',
    parent_uuid='root',
    inventories={'PGPU': Inventory(1)},
    traits=frozenset({OWNER, 'CUSTOM_NVIDIA_1EB8'}),
)
ACTUAL = ActualProvider(
    node=TreeNode('gpu', 'host_0000:3b:00.0', 2, 'root', 'root'),
    inventories=WANTED.inventories,
    traits=WANTED.traits,
)


def with_traits(*more: str) -> ActualProvider:
    return replace(ACTUAL, traits=ACTUAL.traits | set(more))


def node(uuid: str, name: str, parent: str | None = 'root') -> TreeNode:
    return TreeNode(uuid, name, 0, parent, 'root')


def test_what_is_as_it_should_be_is_left_alone() -> None:
    assert difference(WANTED, ACTUAL, ()) == Difference()


def test_what_is_not_there_is_made_with_its_traits_before_its_inventory() -> None:
    assert difference(WANTED, None, ()).operations == (
        Create(WANTED),
        SetTraits('gpu', WANTED.traits),
        SetInventories('gpu', WANTED.inventories),
    )


def test_nothing_to_offer_is_not_offered() -> None:
    empty = replace(WANTED, inventories={})
    kinds = [type(one) for one in difference(empty, None, ()).operations]
    assert kinds == [Create, SetTraits]


@pytest.mark.parametrize(
    'there',
    [
        {},
        {'PGPU': Inventory(2)},
        {'PGPU': Inventory(1, reserved=1)},
        {'PGPU': Inventory(1, allocation_ratio=16.0)},
        {'VGPU': Inventory(1)},
        {'PGPU': Inventory(1), 'VGPU': Inventory(1)},
    ],
)
def test_an_inventory_that_differs_is_replaced(there: dict[str, Inventory]) -> None:
    actual = replace(ACTUAL, inventories=there)
    assert difference(WANTED, actual, ()) == Difference(
        (SetInventories('gpu', WANTED.inventories),)
    )


def test_traits_that_are_missing_are_added() -> None:
    actual = replace(ACTUAL, traits=frozenset({OWNER}))
    assert difference(WANTED, actual, ()) == Difference(
        (SetTraits('gpu', WANTED.traits),)
    )


def test_a_provider_that_lost_our_mark_gets_it_back() -> None:
    """Its uuid is one that only we derive."""
    actual = replace(ACTUAL, traits=ACTUAL.traits - {OWNER})
    assert difference(WANTED, actual, ()).operations == (
        SetTraits('gpu', WANTED.traits),
    )


@pytest.mark.parametrize(
    'foreign', ['CUSTOM_RACK_7', 'HW_GPU_API_VULKAN', 'CUSTOM_GPU']
)
def test_traits_of_others_are_kept(foreign: str) -> None:
    assert difference(WANTED, with_traits(foreign), ()) == Difference()
    changed = replace(WANTED, traits=frozenset({OWNER}))
    (operation,) = difference(changed, with_traits(foreign), ()).operations
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
def test_traits_that_only_a_driver_names_so_go_when_not_wanted(stale: str) -> None:
    (operation,) = difference(WANTED, with_traits(stale), ()).operations
    assert operation == SetTraits('gpu', WANTED.traits)


def test_traits_that_we_told_go_when_not_wanted() -> None:
    wanted = replace(WANTED, formerly=frozenset({'CUSTOM_PHYSNET1'}))
    actual = with_traits('CUSTOM_PHYSNET1', 'CUSTOM_RACK_7')
    (operation,) = difference(wanted, actual, ()).operations
    assert operation == SetTraits('gpu', WANTED.traits | {'CUSTOM_RACK_7'})


def test_a_provider_of_nova_is_not_touched() -> None:
    actual = replace(ACTUAL, traits=frozenset({'OWNER_NOVA'}), inventories={})
    found = difference(WANTED, actual, ())
    assert found.operations == ()
    assert found.problem is not None
    assert 'OWNER_NOVA' in found.problem.reason


def elsewhere(**changed: object) -> ActualProvider:
    moved = replace(ACTUAL.node, parent_uuid='other')
    return replace(ACTUAL, node=moved, inventories={}, **changed)  # type: ignore[arg-type]  # of dataclasses


def test_a_provider_in_the_wrong_place_is_put_where_it_belongs_first() -> None:
    assert difference(WANTED, elsewhere(), ()) == Difference(
        (Place(WANTED), SetInventories('gpu', WANTED.inventories))
    )


def test_in_the_wrong_place_and_without_our_mark_it_is_not_touched() -> None:
    found = difference(WANTED, elsewhere(traits=frozenset()), ())
    assert found.operations == ()
    assert found.problem is not None
    assert 'its parent is other' in found.problem.reason


def test_a_provider_by_another_name_gets_its_own_back() -> None:
    actual = replace(ACTUAL, node=replace(ACTUAL.node, name='x'))
    assert difference(WANTED, actual, ()) == Difference((Place(WANTED),))


def test_a_name_that_another_one_has_is_not_asked_for() -> None:
    actual = replace(ACTUAL, node=replace(ACTUAL.node, name='x'), inventories={})
    found = difference(WANTED, actual, [node('theirs', WANTED.name)])
    assert found.operations == (SetInventories('gpu', WANTED.inventories),)
    assert found.problem is not None


@pytest.mark.parametrize('part', ['', '_region0'])
def test_a_device_that_somebody_else_reports_is_not_reported_too(part: str) -> None:
    wanted = replace(WANTED, name=WANTED.name + part)
    found = difference(wanted, None, [node('theirs', WANTED.name)])
    assert found.operations == ()
    assert found.problem is not None
    assert 'theirs' in found.problem.reason


def test_a_stranger_that_only_begins_alike_is_in_nobodys_way() -> None:
    found = difference(WANTED, None, [node('theirs', 'host_0000:3b:00')])
    assert found.problem is None


def test_what_we_made_and_do_not_want_is_left_over_children_first() -> None:
    tree = [
        node('root', 'host', None),
        node('gpu', WANTED.name),
        node('old', 'host_old'),
        node('older', 'host_a_part_of_old', 'old'),
    ]
    found = leftovers('host', [WANTED], tree, {'gpu', 'old', 'older'})
    assert [one.uuid for one in found] == ['older', 'old']


@pytest.mark.parametrize(
    ('name', 'owned'),
    [('host_0000:81:00.0', False), ('other_0000:81:00.0', True), ('hostess_x', True)],
)
def test_what_is_not_ours_is_not_left_over(name: str, owned: bool) -> None:
    """Without our mark, or named for another host."""
    tree = [node('root', 'host', None), node('it', name)]
    assert leftovers('host', [], tree, {'it'} if owned else set()) == ()


def test_a_compute_node_is_never_left_over() -> None:
    tree = [node('root', 'host_1', None)]
    assert leftovers('host', [], tree, {'root'}) == ()
