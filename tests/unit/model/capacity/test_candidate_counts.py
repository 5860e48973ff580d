# SPDX-License-Identifier: Apache-2.0
"""Tests of the number of allocation candidates, compared with an enumeration."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.model.capacity.explanations import GroupCandidates, ProviderCapacity
from cyborg_lite.model.capacity.fitting import CandidateCount, count_candidates
from cyborg_lite.model.profiles.device_profiles import GroupRequirements

Stock = list[tuple[int, int]]  # host and free units of each provider


def build_provider(number: int, host: int, units: int) -> ProviderCapacity:
    return ProviderCapacity(
        rp_uuid=f'rp{number}',
        name=f'rp{number}',
        hostname=f'host{host}',
        resource_class='PGPU',
        traits=frozenset(),
        total=units,
        free=units,
        free_handles=units,
    )


def build_group(amount: int, stock: Stock) -> GroupCandidates:
    requirements = GroupRequirements((('PGPU', amount),), frozenset(), frozenset())
    offers = {
        f'rp{number}': {'PGPU': units}
        for number, (_, units) in enumerate(stock)
        if units >= amount
    }
    return GroupCandidates(requirements, offers)


def count(amounts: list[int], stock: Stock) -> CandidateCount:
    groups = [build_group(amount, stock) for amount in amounts]
    providers = [build_provider(n, *item) for n, item in enumerate(stock)]
    return count_candidates(groups, providers)


def enumerate_assignments(amounts: list[int], stock: Stock) -> int:
    number = 0
    for choice in product(range(len(stock)), repeat=len(amounts)):
        used = [0] * len(stock)
        for provider, amount in zip(choice, amounts, strict=True):
            used[provider] += amount
        is_possible = all(used[i] <= units for i, (_, units) in enumerate(stock))
        number += is_possible and len({stock[i][0] for i in choice}) == 1
    return number


@given(
    amounts=st.lists(st.integers(1, 2), min_size=1, max_size=4),
    stock=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3)), max_size=5),
)
def test_count_equals_enumeration(amounts: list[int], stock: Stock) -> None:
    expected = CandidateCount(enumerate_assignments(amounts, stock), True)
    assert count(amounts, stock) == expected


@pytest.mark.parametrize(('cards', 'number'), [(4, 24), (8, 40320)])
def test_equal_groups_grow_with_factorial(cards: int, number: int) -> None:
    assert count([1] * cards, [(0, 1)] * cards) == CandidateCount(number, True)


def test_equal_hosts_are_added() -> None:
    stock = [(host, 1) for host in range(500) for _ in range(2)]
    assert count([1, 1], stock) == CandidateCount(1000, True)


def test_many_states_give_upper_bound() -> None:
    stock = [(0, 100 + number) for number in range(20)]
    result = count([1] * 12, stock)
    assert result == CandidateCount(20**12, False)
