# SPDX-License-Identifier: Apache-2.0
"""Number of allocation candidates that Placement builds for a device profile.

With ``group_policy=none`` Placement lists each way to assign the groups of a request
to the providers of one host. Equal groups count as different ones, so the number grows
with their factorial.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cyborg_lite.model.capacity.explanations import GroupCandidates, ProviderCapacity

LIMIT: Final = 1000
"""Candidates that Nova requests by default, see ``max_placement_results``."""

_MIN_STATES: Final = 25
_MAX_STATES: Final = 500  # of one host
_TOTAL_STATES: Final = 5_000  # of all distinct hosts

Provider: TypeAlias = tuple[frozenset[int], int]
"""The groups that a provider can serve, and its free units."""


@dataclass(frozen=True, slots=True)
class CandidateCount:
    """The number of candidates of all hosts."""

    number: int
    is_exact: bool  # False: an upper bound


def count_candidates(
    groups: Sequence[GroupCandidates], providers: Iterable[ProviderCapacity]
) -> CandidateCount:
    """Return the number of candidates of the service's own providers."""
    by_host: defaultdict[str, list[Provider]] = defaultdict(list)
    amounts = [group.requirements.total for group in groups]
    for provider in providers:
        indexes, free = set[int](), 0
        for index, group in enumerate(groups):
            units = sum(group.offers.get(provider.rp_uuid, {}).values())
            if units and len(group.requirements.amounts) == 1:
                indexes.add(index)
                free = units
        if indexes:
            by_host[provider.hostname].append((frozenset(indexes), free))
    # Equal hosts are counted once.
    hosts = Counter(
        tuple(sorted(items, key=lambda item: (sorted(item[0]), item[1])))
        for items in by_host.values()
    )
    # The time is limited, however many hosts there are.
    states = max(_MIN_STATES, min(_MAX_STATES, _TOTAL_STATES // max(1, len(hosts))))
    counts = [
        (_count_host(amounts, host, states), times) for host, times in hosts.items()
    ]
    return CandidateCount(
        sum(count.number * times for count, times in counts),
        all(count.is_exact for count, _ in counts),
    )


def _count_host(
    amounts: Sequence[int], providers: Sequence[Provider], states: int
) -> CandidateCount:
    search = _Search(amounts, states)
    number = search.count(0, frozenset(Counter(providers).items()))
    if search.is_complete:
        return CandidateCount(number, True)
    product = 1
    for index in range(len(amounts)):
        product *= sum(index in indexes for indexes, _ in providers)
    return CandidateCount(product, False)


@dataclass(slots=True)
class _Search:
    """Counts the assignments of groups to the providers of one host."""

    amounts: Sequence[int]  # units of each group
    states: int  # the largest number of results
    results: dict[tuple[int, frozenset[tuple[Provider, int]]], int] = field(
        default_factory=dict
    )

    @property
    def is_complete(self) -> bool:
        """Check whether the number of states was small enough."""
        return len(self.results) < self.states

    def count(self, index: int, free_providers: frozenset[tuple[Provider, int]]) -> int:
        """Return the number of assignments of the groups from an index on.

        :param free_providers: the providers with the number of equal ones
        """
        if index == len(self.amounts):
            return 1
        key = index, free_providers
        if key not in self.results and self.is_complete:
            total = 0
            for (indexes, free), number in free_providers:
                if index in indexes and free >= self.amounts[index]:
                    remaining = Counter(dict(free_providers))
                    remaining[indexes, free] -= 1
                    remaining[indexes, free - self.amounts[index]] += 1
                    total += number * self.count(
                        index + 1, frozenset((+remaining).items())
                    )
            self.results[key] = total
        return self.results.get(key, 0)
