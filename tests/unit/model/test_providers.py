# SPDX-License-Identifier: Apache-2.0
"""A host's deployables become providers that Placement accepts."""

import pytest

from cyborg_lite.model.providers import (
    Inventory,
    ProviderRow,
    legal_name,
    legal_symbol,
    wanted_tree,
)


def row(
    name: str = 'host_0000:3b:00.0',
    total: int = 1,
    reserved: int = 0,
    traits: tuple[str, ...] = (),
) -> ProviderRow:
    return ProviderRow(f'uuid-of-{name}', name, 'PGPU', traits, total, reserved)


def test_each_deployable_is_a_child_of_the_compute_node() -> None:
    first, second = wanted_tree('root', [row('host_b'), row('host_a')])
    assert (first.name, second.name) == ('host_a', 'host_b')
    assert first.uuid == 'uuid-of-host_a'
    assert {first.parent_uuid, second.parent_uuid} == {'root'}


def test_one_server_may_take_all_units_and_none_is_counted_twice() -> None:
    (provider,) = wanted_tree('root', [row(total=16, reserved=3)])
    assert provider.inventories == {
        'PGPU': Inventory(
            total=16,
            reserved=3,
            min_unit=1,
            max_unit=16,
            step_size=1,
            allocation_ratio=1.0,
        )
    }


@pytest.mark.parametrize(('asked', 'given'), [(-1, 0), (2, 2), (3, 2)])
def test_no_more_is_reserved_than_there_is(asked: int, given: int) -> None:
    (provider,) = wanted_tree('root', [row(total=2, reserved=asked)])
    assert provider.inventories['PGPU'].reserved == given


def test_nothing_to_offer_is_a_provider_without_inventory() -> None:
    (provider,) = wanted_tree('root', [row(total=0)])
    assert provider.inventories == {}


def test_every_provider_says_whose_it_is() -> None:
    (provider,) = wanted_tree('root', [row(traits=('CUSTOM_NVIDIA_1EB8',))])
    assert provider.traits == {'OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8'}


def test_a_driver_that_says_so_itself_changes_nothing() -> None:
    (provider,) = wanted_tree('root', [row(traits=('OWNER_CYBORG',))])
    assert provider.traits == {'OWNER_CYBORG'}


def test_closed_keeps_all_but_what_is_reserved() -> None:
    inventory = Inventory(total=4, reserved=1, max_unit=4)
    assert inventory.closed == Inventory(total=4, reserved=4, max_unit=4)


@pytest.mark.parametrize(
    ('name', 'legal'),
    [
        ('CUSTOM_NVIDIA_1EB8_T4_2B', 'CUSTOM_NVIDIA_1EB8_T4_2B'),
        ('custom_nvidia_1eb8_t4-2b', 'CUSTOM_NVIDIA_1EB8_T4_2B'),
        ('CUSTOM_Physnet 1/é', 'CUSTOM_PHYSNET_1__'),
    ],
)
def test_symbols_are_made_legal(name: str, legal: str) -> None:
    assert legal_symbol(name) == legal


def test_a_long_symbol_is_cut() -> None:
    assert len(legal_symbol('CUSTOM_' + 'A' * 300)) == 255


def test_a_name_of_usual_length_is_kept() -> None:
    assert legal_name('n' * 200) == 'n' * 200


def test_long_names_are_cut_and_stay_different() -> None:
    names = {legal_name('n' * 250 + end) for end in 'ab'}
    assert len(names) == 2
    assert {len(name) for name in names} == {200}
