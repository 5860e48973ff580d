# SPDX-License-Identifier: Apache-2.0
"""Number of further servers with a device profile, by host.

A server needs an accelerator for every group of the profile. Its CPUs, memory and disk
are not considered.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cyborg_lite.model.capacity import obstacles
from cyborg_lite.model.capacity.explanations import (
    GroupCandidates,
    ProviderCapacity,
    Reason,
)
from cyborg_lite.model.capacity.server_counts import (
    MAX_STEPS,
    Kind,
    ServerCount,
    count_servers,
)
from cyborg_lite.model.profiles.alternatives import Choice
from cyborg_lite.model.text import format_count

_MIN_STEPS: Final = 50
_TOTAL_STEPS: Final = 200_000  # for the distinct hosts of one answer


@dataclass(frozen=True, slots=True)
class Shortage:
    """The groups of a device profile that run out of units first."""

    groups: tuple[int, ...]  # indices in the profile
    resource_classes: tuple[str, ...]
    traits: tuple[str, ...]  # that these groups require
    text: str
    hosts: int = 1  # on which these groups run out first


@dataclass(frozen=True, slots=True)
class HostCapacity:
    """The number of further servers that fit on one host."""

    hostname: str
    servers: int
    shortage: Shortage
    is_exact: bool = True  # False: more may fit


@dataclass(frozen=True, slots=True)
class ProfileCapacity:
    """The number of further servers that fit with one device profile."""

    servers: int
    hosts: tuple[HostCapacity, ...]
    shortage: Shortage | None = None  # None: there are no hosts
    is_exact: bool = True  # False: more may fit
    warnings: tuple[Reason, ...] = ()
    choice: Choice = ()  # of alternatives; empty: the profile has none


@dataclass(frozen=True, slots=True)
class _Problem:
    """Groups and free units that determine the number of servers of a host."""

    kinds: tuple[Kind, ...]
    free: tuple[tuple[str, int], ...]


def count_capacity(
    groups: Sequence[GroupCandidates],
    providers: Iterable[ProviderCapacity],
    hosts: Collection[str],
) -> ProfileCapacity:
    """Return the number of servers that fit on each host, and in all.

    :param groups: the groups of a profile
    :param providers: providers of the whole cloud
    :param hosts: names of the hosts to count
    """
    by_host: dict[str, list[ProviderCapacity]] = defaultdict(list)
    for provider in providers:
        by_host[provider.hostname].append(provider)
    problems = {name: _build_problem(groups, by_host[name]) for name in sorted(hosts)}
    counts = _solve(problems.values())
    results = tuple(
        _describe_host(name, groups, counts[problem])
        for name, problem in problems.items()
    )
    classes = {name for group in groups for name in group.requirements.resource_classes}
    relevant = {
        name
        for name in problems
        if any(provider.resource_class in classes for provider in by_host[name])
    }
    return ProfileCapacity(
        servers=sum(host.servers for host in results),
        hosts=results,
        shortage=_find_main_shortage(results, relevant),
        is_exact=all(host.is_exact for host in results),
    )


def _solve(problems: Iterable[_Problem]) -> Mapping[_Problem, ServerCount]:
    """Return the solution of each problem. Equal problems are solved once."""
    distinct = set(problems)
    # The time of the answer is limited, however many hosts there are.
    steps = max(_MIN_STEPS, min(MAX_STEPS, _TOTAL_STEPS // max(1, len(distinct))))
    return {
        problem: count_servers(problem.kinds, dict(problem.free), steps)
        for problem in distinct
    }


def _build_problem(
    groups: Sequence[GroupCandidates], providers: Sequence[ProviderCapacity]
) -> _Problem:
    """Return the problem with short names of providers, so that equal hosts match."""
    ordered = sorted(
        providers,
        key=lambda item: (
            item.resource_class,
            [_count_free(group, item) for group in groups],
        ),
    )
    names = {provider.rp_uuid: str(index) for index, provider in enumerate(ordered)}
    free: dict[str, int] = {}
    indices: dict[tuple[int, frozenset[str]], list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        able = set()
        for provider in ordered:
            units = _count_free(group, provider)
            if units:
                name = names[provider.rp_uuid]
                able.add(name)
                # The groups are queried one after another; the least amount is safe.
                free[name] = min(units, free.get(name, units))
        # Old profiles may have a group without units, which no provider serves.
        units = max(1, group.requirements.total)
        indices[units, frozenset(able)].append(index)
    return _Problem(
        tuple(
            Kind(units, able, tuple(numbers))
            for (units, able), numbers in indices.items()
        ),
        tuple(sorted(free.items())),
    )


def _count_free(group: GroupCandidates, provider: ProviderCapacity) -> int:
    """Return the units that a provider has for a group; 0: it cannot serve it now."""
    requirements = group.requirements
    if len(requirements.amounts) != 1 or not obstacles.can_serve_now(group, provider):
        return 0
    ((name, _),) = requirements.amounts
    offer = group.offers[provider.rp_uuid].get(name, 0)
    return min(offer, provider.free_handles)


def _describe_host(
    hostname: str, groups: Sequence[GroupCandidates], count: ServerCount
) -> HostCapacity:
    limits = [groups[index].requirements for index in count.groups]
    classes = sorted({name for item in limits for name in item.resource_classes})
    traits = frozenset[str]().union(*(item.required for item in limits))
    numbers = ', '.join(map(str, count.groups))
    unused = count.free - count.servers * count.needed
    text = (
        f'{unused} of {count.free} free units are left for group {numbers} after '
        f'{format_count(count.servers, "server")}, and one server needs {count.needed}.'
    )
    if unused >= count.needed:
        text += ' The units are on several providers, and one must serve a whole group.'
    shortage = Shortage(count.groups, tuple(classes), tuple(sorted(traits)), text)
    return HostCapacity(hostname, count.servers, shortage, count.is_exact)


def _find_main_shortage(
    hosts: Iterable[HostCapacity], relevant: Collection[str]
) -> Shortage | None:
    """Return the shortage of most hosts.

    :param relevant: the hosts that have a resource class of the profile. The others
        count only if there are no such hosts.
    """
    names: dict[tuple[int, ...], list[str]] = defaultdict(list)
    shortages: dict[tuple[int, ...], Shortage] = {}
    for host in hosts:
        if host.hostname in relevant or not relevant:
            names[host.shortage.groups].append(host.hostname)
            shortages.setdefault(host.shortage.groups, host.shortage)
    if not names:
        return None
    groups = min(names, key=lambda key: (-len(names[key]), key))
    numbers = ', '.join(map(str, groups))
    first, number = shortages[groups], len(names[groups])
    text = f'Group {numbers} runs out first on {format_count(number, "host")}.'
    return Shortage(groups, first.resource_classes, first.traits, text, number)
