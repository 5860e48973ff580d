# SPDX-License-Identifier: Apache-2.0
"""Search for the fewest users and faults with which a seed violates a rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

MAX_RUNS: Final = 150
"""Executions of a search."""


@dataclass(frozen=True)
class Scenario:
    """The parts of an execution that can be left out."""

    users: int
    faults: Sequence[int]
    """Numbers of the faults that happen."""


def shrink(longest: Scenario, violates: Callable[[Scenario], bool]) -> Scenario:
    """Leave out users, then more and more single faults, while the violation stays.

    :param violates: executes a scenario; returns True if the rule is violated
    """
    shortest = longest
    runs = 0
    for users in range(1, longest.users):
        runs += 1
        if violates(replace(longest, users=users)):
            shortest = replace(longest, users=users)
            break
    start, size = 0, len(shortest.faults)
    while size and runs < MAX_RUNS:
        faults = shortest.faults
        if start >= len(faults):
            start, size = 0, size // 2
            continue
        runs += 1
        shorter = replace(shortest, faults=[*faults[:start], *faults[start + size :]])
        if violates(shorter):
            shortest = shorter
        else:
            start += size
    return shortest
