# SPDX-License-Identifier: Apache-2.0
"""Whether several groups can be served at once by providers that they share."""

from collections.abc import Mapping, Sequence
from functools import cache


def fit_together(
    wanted: Sequence[tuple[int, frozenset[str]]], free: Mapping[str, int]
) -> bool:
    """:param wanted: of each group the units, and the providers that could serve it
    :param free: units by provider
    """
    # The most difficult ones first, so that what cannot be is soon found out.
    groups = sorted(wanted, key=lambda one: (-one[0], len(one[1])))
    left = tuple(sorted(free.items()))

    @cache
    def fits(index: int, left: tuple[tuple[str, int], ...]) -> bool:
        rest = groups[index:]
        if not rest:
            return True
        useful = frozenset[str]().union(*(able for _, able in rest))
        supply = sum(units for name, units in left if name in useful)
        if sum(units for units, _ in rest) > supply:
            return False
        units, able = rest[0]
        tried = set()
        for place, (name, there) in enumerate(left):
            # Of providers that the same groups can use, one of each size will do.
            alike = there, frozenset(n for n, (_, a) in enumerate(rest) if name in a)
            if name not in able or there < units or alike in tried:
                continue
            tried.add(alike)
            after = (*left[:place], (name, there - units), *left[place + 1 :])
            if fits(index + 1, after):
                return True
        return False

    return fits(0, left)
