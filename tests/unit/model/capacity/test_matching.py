# SPDX-License-Identifier: Apache-2.0
"""Tests of groups that share providers, compared with an exhaustive search."""

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyborg_lite.model.capacity.fitting import can_serve_together

NAMES = 'abc'
GROUPS = st.lists(
    st.tuples(st.integers(1, 3), st.frozensets(st.sampled_from(NAMES))), max_size=5
)
FREE = st.fixed_dictionaries({name: st.integers(0, 5) for name in NAMES})


def is_solvable(
    groups_by_provider: list[tuple[int, frozenset[str]]], free: dict[str, int]
) -> bool:
    for choice in itertools.product(*(sorted(able) for _, able in groups_by_provider)):
        used: Counter[str] = Counter()
        for name, (units, _) in zip(choice, groups_by_provider, strict=True):
            used[name] += units
        if all(used[name] <= free[name] for name in used):
            return True
    return False


@settings(max_examples=300, deadline=None)
@given(GROUPS, FREE)
def test_can_serve_together_equals_exhaustive_search(
    groups_by_provider: list[tuple[int, frozenset[str]]], free: dict[str, int]
) -> None:
    assert can_serve_together(groups_by_provider, free) == is_solvable(
        groups_by_provider, free
    )


@pytest.mark.parametrize(('units', 'fits'), [(2, True), (1, False)])
def test_can_serve_together_many_equal_providers_terminates(
    units: int, fits: bool
) -> None:
    """Use sizes for which an exhaustive search would not end; no time is asserted."""
    free = {f'card-{number}': units for number in range(16)}
    groups = [(1, frozenset(free)) for _ in range(32)]
    assert can_serve_together(groups, free) is fits
    pairs = [(2, frozenset(free)) for _ in range(17)]
    assert not can_serve_together(pairs, dict.fromkeys(free, 3))
