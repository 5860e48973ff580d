# SPDX-License-Identifier: Apache-2.0
"""Number of further servers by host, and the groups that run out first."""

from typing import Any

import pytest

from cyborg_lite.model.capacity.explanations import (
    GroupCandidates,
    ProviderCapacity,
    ReasonCode,
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


def test_count_sums_hosts_and_names_scarce_class() -> None:
    fpga: dict[str, Any] = {'resource_class': 'FPGA'}
    capacity = count(
        [group(), group(name='FPGA')],
        card('a', free=5),
        card('b', free=2, **fpga),
        card('c', 'h2', free=3),
        card('d', 'h2', free=7, **fpga),
        card('e', 'h3', free=4),
        card('f', 'h3', free=1, **fpga),
    )
    assert capacity.servers == 2 + 3 + 1
    shortages = {
        host.hostname: (host.servers, host.shortage.resource_classes)
        for host in capacity.hosts
    }
    assert shortages == {
        'h1': (2, ('FPGA',)),
        'h2': (3, ('PGPU',)),
        'h3': (1, ('FPGA',)),
    }
    assert capacity.shortage is not None
    assert capacity.shortage.groups == (1,)
    assert capacity.shortage.hosts == 2


def test_count_names_traits_of_scarce_group() -> None:
    fast = card('b', free=1, traits=frozenset({'FAST'}))
    capacity = count([group(), group(FAST='required')], card('a', free=9), fast)
    assert capacity.servers == 1
    assert capacity.shortage is not None
    assert capacity.shortage.traits == ('FAST',)
    assert capacity.hosts[0].shortage.text == (
        '0 of 1 free units are left for group 1 after 1 server, and one server needs 1.'
    )


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


@pytest.mark.parametrize(
    'fields',
    [
        {'closed': ReasonCode.MAINTENANCE},
        {'closed_for_guest': ReasonCode.MDEV_NOT_ATTACHED},
        {'free_handles': 0},
    ],
)
def test_count_leaves_out_unusable_providers(fields: dict[str, Any]) -> None:
    assert count([group()], card('a', free=4, **fields)).servers == 0


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
