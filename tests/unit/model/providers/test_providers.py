# SPDX-License-Identifier: Apache-2.0
"""Tests of the providers that are built from deployables."""

from dataclasses import replace

import pytest

from cyborg_lite.model.providers.providers import (
    ProviderRow,
    build_tree,
    valid_provider_name,
    valid_symbol,
)


def row(
    name: str = 'host_0000:3b:00.0',
    total: int = 1,
    reserved: int = 0,
    traits: tuple[str, ...] = (),
) -> ProviderRow:
    return ProviderRow(f'uuid-of-{name}', name, 'PGPU', traits, total, reserved)


@pytest.mark.parametrize(('reserved', 'expected'), [(-1, 0), (2, 2), (3, 2)])
def test_build_tree_limits_reserved_to_total(reserved: int, expected: int) -> None:
    (provider,) = build_tree('root', [row(total=2, reserved=reserved)])
    assert provider.inventories['PGPU'].reserved == expected


def test_build_tree_zero_total_has_no_inventory() -> None:
    (provider,) = build_tree('root', [row(total=0)])
    assert provider.inventories == {}


def test_build_tree_existing_owner_trait_stays_single() -> None:
    (provider,) = build_tree('root', [row(traits=('OWNER_CYBORG',))])
    assert provider.traits == {'OWNER_CYBORG'}


@pytest.mark.parametrize(
    ('name', 'legal'),
    [
        ('CUSTOM_NVIDIA_1EB8_T4_2B', 'CUSTOM_NVIDIA_1EB8_T4_2B'),
        ('custom_nvidia_1eb8_t4-2b', 'CUSTOM_NVIDIA_1EB8_T4_2B'),
        ('CUSTOM_Physnet 1/é', 'CUSTOM_PHYSNET_1__'),
    ],
)
def test_valid_symbol_replaces_illegal_characters(name: str, legal: str) -> None:
    assert valid_symbol(name) == legal


def test_valid_provider_name_truncated_names_stay_unique() -> None:
    names = {valid_provider_name('n' * 250 + end) for end in 'ab'}
    assert len(names) == 2
    assert {len(name) for name in names} == {200}


@pytest.mark.parametrize(
    ('reserved', 'size', 'expected'),
    [(0, 2, (2, 2, 0)), (1, 2, (2, 2, 2)), (3, 2, (2, 2, 4)), (1, 5, (1, 1, 1))],
)
def test_build_tree_group_is_given_together(
    reserved: int, size: int, expected: tuple[int, int, int]
) -> None:
    group = replace(row(total=4, reserved=reserved), group_size=size)
    (provider,) = build_tree('root', [group])
    inventory = provider.inventories['PGPU']
    assert (inventory.min_unit, inventory.step_size, inventory.reserved) == expected
