# SPDX-License-Identifier: Apache-2.0
"""Tests of foreign providers that represent a device of the host."""

import pytest

from cyborg_lite.model.ownership.nova_providers import (
    describe_conflict,
    find_foreign_provider,
    map_foreign_addresses,
)
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    ProviderInventory,
    TreeNode,
)


def node(name: str, uuid: str = 'foreign') -> TreeNode:
    return TreeNode(uuid, name, 0, 'root', 'root')


def test_find_foreign_provider_matches_any_function() -> None:
    addresses = map_foreign_addresses(
        'h', [node('h_0000:3B:00.4'), node('h_numa0', 'x'), node('h_0000:81:00.0', 'y')]
    )
    assert set(addresses) == {'0000:3b:00.4', '0000:81:00.0'}
    provider = find_foreign_provider({'0000:3b:00.0', '0000:3b:00.4'}, addresses)
    assert provider is not None
    assert provider.uuid == 'foreign'
    assert find_foreign_provider({'0000:3b:00.0'}, addresses) is None


@pytest.mark.parametrize(
    ('trait', 'resource_class', 'owner'),
    [
        ('OWNER_NOVA', 'PGPU', 'Nova'),
        ('COMPUTE_MANAGED_PCI_DEVICE', 'CUSTOM_GPU', 'Nova'),
        ('CUSTOM_X', 'CUSTOM_PCI_10DE_1EB8', 'Nova'),
        ('CUSTOM_X', 'PGPU', 'another service'),
    ],
)
def test_describe_conflict_names_driver_and_owner(
    trait: str, resource_class: str, owner: str
) -> None:
    holder = ActualProvider(
        node('h_0000:3B:00.0'),
        {resource_class: ProviderInventory(1)},
        frozenset({trait}),
    )
    reason = describe_conflict(holder, 'NVIDIA')
    for word in ('driver NVIDIA', owner, 'h_0000:3B:00.0', 'foreign'):
        assert word in reason
