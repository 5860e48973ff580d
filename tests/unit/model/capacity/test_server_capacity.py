# SPDX-License-Identifier: Apache-2.0
"""Number of further servers by host, and the groups that run out first."""

import itertools
from collections.abc import Mapping, Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyborg_lite.model.capacity.explanations import ProviderCapacity
from cyborg_lite.model.capacity.server_capacity import (
    Kind,
    ProfileCapacity,
    count_capacity,
    count_servers,
)
from tests.builders.capacities import build_group, build_provider, list_candidates


def count(
    groups: list[dict[str, str]], *providers: ProviderCapacity
) -> ProfileCapacity:
    """Count with Placement answering as it does for these providers."""
    candidates = [list_candidates(keys, providers) for keys in groups]
    return count_capacity(candidates, providers, {item.hostname for item in providers})


def card(name: str, host: str = 'h1', free: int = 1) -> ProviderCapacity:
    return build_provider(name, host, total=8, free=free, free_handles=free)


def test_count_main_shortage_ignores_hosts_without_the_hardware() -> None:
    drives = (
        build_provider(host, host, resource_class='CUSTOM_NVME')
        for host in ('h2', 'h3')
    )
    capacity = count([build_group(), build_group(2)], card('a', free=6), *drives)
    assert capacity.servers == 2
    assert capacity.shortage is not None
    assert (capacity.shortage.groups, capacity.shortage.hosts) == ((0, 1), 1)


def test_count_scattered_units_are_explained() -> None:
    capacity = count(
        [build_group(2)], *(card(name) for name in 'abc'), card('d', free=2)
    )
    assert capacity.servers == 1
    # Placement offers no provider that has too few units for the group.
    assert '0 of 2 free units are left' in capacity.hosts[0].shortage.text
    capacity = count([build_group(2)], card('a', free=3), card('b', free=3))
    assert capacity.hosts[0].shortage.text.endswith('one must serve a whole group.')


@pytest.mark.parametrize(
    'groups', [[], [{}], [{'resources:PGPU': '1', 'resources:FPGA': '1'}]]
)
def test_count_group_that_no_provider_serves(groups: list[dict[str, str]]) -> None:
    assert count(groups, card('a', free=4)).servers == 0


# --- number of servers, compared with a search of all placements ---

NAMES = 'abcd'


def kind(units: int, providers: str, *groups: int) -> Kind:
    return Kind(units, frozenset(providers), groups)


def search(kinds: Sequence[Kind], free: Mapping[str, int]) -> int:
    """Return the length of the longest series of servers, by trying all of them."""
    groups = [item for item in kinds for _ in item.groups]
    names = sorted(free)

    @cache
    def extend(units: tuple[int, ...]) -> int:
        longest = 0
        for choice in itertools.product(*(sorted(item.providers) for item in groups)):
            free_units = dict(zip(names, units, strict=True))
            for item, provider in zip(groups, choice, strict=True):
                free_units[provider] -= item.units
            if min(free_units.values()) >= 0:
                longest = max(longest, 1 + extend(tuple(free_units.values())))
        return longest

    return extend(tuple(free[name] for name in names))


KINDS = st.lists(
    st.tuples(st.integers(1, 3), st.sets(st.sampled_from(NAMES), min_size=0)),
    min_size=1,
    max_size=3,
)
FREE = st.fixed_dictionaries({name: st.integers(0, 5) for name in NAMES})


@settings(max_examples=150, deadline=None)
@given(drawn=KINDS, free=FREE)
def test_count_never_exceeds_search(
    drawn: list[tuple[int, set[str]]], free: dict[str, int]
) -> None:
    kinds = [
        Kind(units, frozenset(providers), (index,))
        for index, (units, providers) in enumerate(drawn)
    ]
    count = count_servers(kinds, free)
    number = search(kinds, free)
    assert count.servers == number if count.is_exact else count.servers <= number
    assert count.is_exact or len({item.units for item in kinds}) > 1


def test_count_scattered_units_names_all_groups() -> None:
    # The bounds allow one server, but no provider serves both groups beside the other.
    kinds = [kind(3, 'ab', 0), kind(2, 'ab', 1)]
    count = count_servers(kinds, {'a': 1, 'b': 4})
    assert count.servers <= search(kinds, {'a': 1, 'b': 4})
    assert (count.groups, count.is_exact) == ((0, 1), False)


def test_count_large_host_is_bounded() -> None:
    free = {f'p{number}': 64 for number in range(32)}
    kinds = [Kind(units, frozenset(free), (units,)) for units in (1, 2, 3, 5, 7)]
    count = count_servers(kinds, free)
    assert 32 * 64 // 18 - 4 <= count.servers <= 32 * 64 // 18


def test_count_many_kinds_is_bounded() -> None:
    names = [f'p{number}' for number in range(16)]
    kinds = [
        Kind(1, frozenset((names[index], names[(index + 1) % 16])), (index,))
        for index in range(16)
    ]
    count = count_servers(kinds, dict.fromkeys(names, 4))
    assert count.servers <= 4
