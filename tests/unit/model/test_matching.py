# SPDX-License-Identifier: Apache-2.0
"""Groups that share providers: what fits at once, against trying everything."""

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyborg_lite.model.matching import fit_together

NAMES = 'abc'
GROUPS = st.lists(
    st.tuples(st.integers(1, 3), st.frozensets(st.sampled_from(NAMES))), max_size=5
)
FREE = st.fixed_dictionaries({name: st.integers(0, 5) for name in NAMES})


def tried_out(wanted: list[tuple[int, frozenset[str]]], free: dict[str, int]) -> bool:
    for choice in itertools.product(*(sorted(able) for _, able in wanted)):
        used: Counter[str] = Counter()
        for name, (units, _) in zip(choice, wanted, strict=True):
            used[name] += units
        if all(used[name] <= free[name] for name in used):
            return True
    return False


@settings(max_examples=300, deadline=None)
@given(GROUPS, FREE)
def test_it_is_true_exactly_where_some_choice_fits(
    wanted: list[tuple[int, frozenset[str]]], free: dict[str, int]
) -> None:
    assert fit_together(wanted, free) == tried_out(wanted, free)


@pytest.mark.parametrize(('units', 'fits'), [(2, True), (1, False)])
def test_many_groups_and_many_alike_providers_are_soon_decided(
    units: int, fits: bool
) -> None:
    """Nothing here asserts a time: it would not end at all if it tried everything."""
    free = {f'card-{number}': units for number in range(16)}
    groups = [(1, frozenset(free)) for _ in range(32)]
    assert fit_together(groups, free) is fits
    odd = [(2, frozenset(free)) for _ in range(17)]
    assert not fit_together(odd, dict.fromkeys(free, 3))
