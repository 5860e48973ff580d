# SPDX-License-Identifier: Apache-2.0
"""Providers that Nova, or somebody, named for a device of ours."""

import pytest

from cyborg_lite.model.ownership import (
    address_in,
    claimant,
    claimed_addresses,
    conflict,
)
from cyborg_lite.model.providers import ActualProvider, Inventory, TreeNode


def node(name: str, uuid: str = 'theirs') -> TreeNode:
    return TreeNode(uuid, name, 0, 'root', 'root')


@pytest.mark.parametrize(
    'name',
    [
        'host-1_0000:3B:0A.7',  # Nova's PCI tracker
        'host-1_0000:3b:0a.7',  # ours, or Cyborg's
        'host-1_pci_0000_3b_0a_7',  # Nova's libvirt driver, of a card with vGPUs
    ],
)
def test_names_tell_an_address(name: str) -> None:
    assert address_in(name, 'host-1') == '0000:3b:0a.7'


@pytest.mark.parametrize(
    'name',
    [
        'host-1',
        'host-1_numa0',
        'host-2_0000:3b:0a.7',
        'host-10_0000:3b:0a.7',
        'host-1_0000:3b:0a.7_region0',
        'host-1_0000:3b:0a.9',
        '_0000:3b:0a.7',
    ],
)
def test_other_names_tell_none(name: str) -> None:
    assert address_in(name, 'host-1') is None


def test_a_device_is_claimed_by_any_of_its_functions() -> None:
    claims = claimed_addresses(
        'h', [node('h_0000:3B:00.4'), node('h_numa0', 'x'), node('h_0000:81:00.0', 'y')]
    )
    assert set(claims) == {'0000:3b:00.4', '0000:81:00.0'}
    found = claimant({'0000:3b:00.0', '0000:3b:00.4'}, claims)
    assert found is not None
    assert found.uuid == 'theirs'
    assert claimant({'0000:3b:00.0'}, claims) is None


@pytest.mark.parametrize(
    ('trait', 'resource_class', 'who'),
    [
        ('OWNER_NOVA', 'PGPU', 'Nova'),
        ('COMPUTE_MANAGED_PCI_DEVICE', 'CUSTOM_GPU', 'Nova'),
        ('CUSTOM_X', 'CUSTOM_PCI_10DE_1EB8', 'Nova'),
        ('CUSTOM_X', 'PGPU', 'another service'),
    ],
)
def test_both_who_manage_it_are_named(
    trait: str, resource_class: str, who: str
) -> None:
    holder = ActualProvider(
        node('h_0000:3B:00.0'), {resource_class: Inventory(1)}, frozenset({trait})
    )
    reason = conflict(holder, 'NVIDIA')
    for word in ('driver NVIDIA', who, 'h_0000:3B:00.0', 'theirs'):
        assert word in reason


def test_a_reason_fits_into_its_column() -> None:
    holder = ActualProvider(node('h' * 300), {}, frozenset())
    assert len(conflict(holder, 'NVIDIA')) == 255
