# SPDX-License-Identifier: Apache-2.0
"""Number of further servers by host, and the groups that run out first."""

from typing import Any

import pytest

from cyborg_lite.model.capacity.explanations import (
    GroupCandidates,
    ProviderCapacity,
)
from cyborg_lite.model.capacity.server_capacity import ProfileCapacity, count_capacity
from cyborg_lite.model.profiles.device_profiles import Group


def card(name: str, host: str = 'h1', free: int = 1, **fields: Any) -> ProviderCapacity:
    return ProviderCapacity(
        **{
            'rp_uuid': name,
            'name': name,
            'hostname': host,
            'resource_class': 'PGPU',
            'traits': frozenset(),
            'total': 8,
            'free': free,
            'free_handles': free,
            **fields,
        }
    )


def count(
    groups: list[dict[str, str]], *providers: ProviderCapacity
) -> ProfileCapacity:
    """Count with Placement answering as it does for these providers."""
    candidates = []
    for keys in groups:
        requirements = Group.parse(keys).requirements
        amounts = dict(requirements.amounts)
        offers = {
            item.rp_uuid: {item.resource_class: item.free}
            for item in providers
            if item.free >= amounts.get(item.resource_class, 99)
            and requirements.required <= item.traits
        }
        candidates.append(GroupCandidates(requirements, offers))
    return count_capacity(candidates, providers, {item.hostname for item in providers})


def group(units: int = 1, name: str = 'PGPU', **traits: str) -> dict[str, str]:
    keys = {f'trait:{trait}': value for trait, value in traits.items()}
    return {f'resources:{name}': str(units), **keys}


def test_count_main_shortage_ignores_hosts_without_the_hardware() -> None:
    storage: dict[str, Any] = {'resource_class': 'CUSTOM_NVME'}
    capacity = count(
        [group(), group(2)],
        card('a', free=6),
        card('b', 'h2', **storage),
        card('c', 'h3', **storage),
    )
    assert capacity.servers == 2
    assert capacity.shortage is not None
    assert (capacity.shortage.groups, capacity.shortage.hosts) == ((0, 1), 1)


def test_count_scattered_units_are_explained() -> None:
    capacity = count([group(2)], *(card(name) for name in 'abc'), card('d', free=2))
    assert capacity.servers == 1
    # Placement offers no provider that has too few units for the group.
    assert '0 of 2 free units are left' in capacity.hosts[0].shortage.text
    capacity = count([group(2)], card('a', free=3), card('b', free=3))
    assert capacity.hosts[0].shortage.text.endswith('one must serve a whole group.')


@pytest.mark.parametrize(
    'groups', [[], [{}], [{'resources:PGPU': '1', 'resources:FPGA': '1'}]]
)
def test_count_group_that_no_provider_serves(groups: list[dict[str, str]]) -> None:
    assert count(groups, card('a', free=4)).servers == 0
