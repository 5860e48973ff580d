# SPDX-License-Identifier: Apache-2.0
"""Assignment of several groups to providers that they share."""

from collections.abc import Mapping, Sequence
from functools import cache


def can_serve_together(
    demands: Sequence[tuple[int, frozenset[str]]], free: Mapping[str, int]
) -> bool:
    """Check whether the providers can serve all groups at once.

    :param demands: units of each group, and the providers that could serve it
    :param free: free units by provider
    """
    # The most difficult groups come first, so that a failure is detected early.
    groups = sorted(demands, key=lambda demand: (-demand[0], len(demand[1])))

    @cache
    def fits(index: int, capacity: tuple[tuple[str, int], ...]) -> bool:
        """Check whether the groups from ``index`` on fit the remaining capacity."""
        unplaced = groups[index:]
        if not unplaced:
            return True
        useful = frozenset[str]().union(*(able for _, able in unplaced))
        available = sum(units for name, units in capacity if name in useful)
        if sum(units for units, _ in unplaced) > available:
            return False
        units, able = unplaced[0]
        signatures = set()
        for position, (name, remaining) in enumerate(capacity):
            # Of providers of equal size that the same groups can use, try only one.
            users = frozenset(
                n for n, (_, names) in enumerate(unplaced) if name in names
            )
            signature = remaining, users
            if name not in able or remaining < units or signature in signatures:
                continue
            signatures.add(signature)
            reduced = (name, remaining - units)
            if fits(
                index + 1, (*capacity[:position], reduced, *capacity[position + 1 :])
            ):
                return True
        return False

    return fits(0, tuple(sorted(free.items())))
