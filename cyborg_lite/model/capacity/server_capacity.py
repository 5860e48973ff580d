# SPDX-License-Identifier: Apache-2.0
"""Number of further servers with a device profile, by host.

A server needs an accelerator for every group of the profile. Its CPUs, memory and disk
are not considered.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations
from typing import Final

from cyborg_lite.model.capacity import obstacles
from cyborg_lite.model.capacity.explanations import (
    GroupCandidates,
    ProviderCapacity,
    Reason,
)
from cyborg_lite.model.profiles.alternatives import Choice
from cyborg_lite.model.text import format_count

# --- number of servers that the providers of one host can serve together ---
#
# A server needs every group of a device profile once, and one provider serves a whole
# group, as Placement does with ``group_policy=none``. Groups of several servers, and
# several groups of one server, may share a provider.
#
# The upper bound is that of Hall's theorem: for each set of groups, the providers that
# serve one of them must have room for all. It is exact if the groups have equal units.
# Otherwise the servers are placed one after another, which gives a lower bound. If it
# is below the upper one, the lower bound is the answer, and it is not exact.


_MAX_SUBSETS_OF: Final = 10  # groups of which all subsets are checked

Amounts = tuple[int, ...]  # by kind


@dataclass(frozen=True, slots=True)
class Kind:
    """Equal groups of one server: each of them needs the same units of a provider."""

    units: int
    providers: frozenset[str]  # that can serve such a group
    groups: tuple[int, ...]  # their indices in the profile

    @property
    def count(self) -> int:
        """The number of such groups of one server."""
        return len(self.groups)


@dataclass(frozen=True, slots=True)
class ServerCount:
    """The number of servers that fit, and the groups that prevent a further one."""

    servers: int
    is_exact: bool  # False: more may fit
    groups: tuple[int, ...]  # indices of the groups that run out of providers first
    free: int  # units of the providers that can serve these groups
    needed: int  # units that these groups of one server need


@dataclass(frozen=True, slots=True)
class _Bound:
    servers: int
    kinds: tuple[Kind, ...]
    room: float  # servers, with fractions

    @property
    def rank(self) -> tuple[float, int, Amounts]:
        """Order of bounds: the tightest one first, then that of the fewest kinds."""
        groups = tuple(group for kind in self.kinds for group in kind.groups)
        return self.room, len(self.kinds), groups


def count_servers(kinds: Sequence[Kind], free: Mapping[str, int]) -> ServerCount:
    """Return the number of servers that fit on the free units.

    :param kinds: the groups of one server; none: no server gets an accelerator
    :param free: free units of each provider
    """
    if not kinds:
        return ServerCount(0, True, (), 0, 0)
    # Kinds that share no provider do not affect one another.
    counts = [_count(group, free) for group in _split(kinds)]
    least = min(counts, key=lambda count: (count.servers, count.groups))
    # A count that is a lower bound may equal the least exact count.
    limits = [count for count in counts if count.servers == least.servers]
    exact = [count for count in limits if count.is_exact]
    return exact[0] if exact else least


def _split(kinds: Sequence[Kind]) -> list[list[Kind]]:
    """Return the kinds in groups that have no provider in common."""
    groups: list[tuple[list[Kind], set[str]]] = []
    for kind in kinds:
        joined = [kind], set(kind.providers)
        apart = []
        for group in groups:
            if group[1] & joined[1]:
                joined = [*group[0], *joined[0]], group[1] | joined[1]
            else:
                apart.append(group)
        groups = [*apart, joined]
    return [members for members, _ in groups]


def _count(kinds: Sequence[Kind], free: Mapping[str, int]) -> ServerCount:
    bound = min(_list_bounds(kinds, free), key=lambda item: item.rank)
    servers = bound.servers
    is_uniform = len({kind.units for kind in kinds}) == 1
    if not is_uniform or len(kinds) > _MAX_SUBSETS_OF:
        servers = _fill(kinds, free, bound.servers)
    # If fewer servers fit than the bound allows, the free units are too scattered.
    limits = bound.kinds if servers == bound.servers else tuple(kinds)
    providers = frozenset[str]().union(*(kind.providers for kind in limits))
    return ServerCount(
        servers,
        servers == bound.servers,
        tuple(sorted(group for kind in limits for group in kind.groups)),
        sum(free[provider] for provider in providers),
        sum(kind.units * kind.count for kind in limits),
    )


def _list_bounds(kinds: Sequence[Kind], free: Mapping[str, int]) -> Iterator[_Bound]:
    """Yield upper bounds of the number of servers, one per set of kinds."""
    largest = len(kinds) if len(kinds) <= _MAX_SUBSETS_OF else 2
    for size in range(1, largest + 1):
        for subset in combinations(kinds, size):
            yield _bound_servers(subset, free)
    if largest < len(kinds):
        yield _bound_servers(tuple(kinds), free)


def _bound_servers(kinds: tuple[Kind, ...], free: Mapping[str, int]) -> _Bound:
    providers = frozenset[str]().union(*(kind.providers for kind in kinds))
    units = min(kind.units for kind in kinds)
    slots = sum(free[provider] // units for provider in providers)
    by_slots = slots / sum(kind.count for kind in kinds)
    needed = sum(kind.units * kind.count for kind in kinds)
    by_units = sum(free[provider] for provider in providers) / needed
    room = min(by_slots, by_units)
    return _Bound(int(room), kinds, room)


def _fill(kinds: Sequence[Kind], free: Mapping[str, int], limit: int) -> int:
    """Return the number of servers that fit one after another, at most ``limit``.

    The largest groups come first. A group gets the provider that serves the fewest
    kinds and, of those, the fullest one.
    """
    free_units = dict(free)
    users = Counter(name for kind in kinds for name in kind.providers)
    groups = [
        kind
        for kind in sorted(kinds, key=lambda kind: (-kind.units, len(kind.providers)))
        for _ in kind.groups
    ]
    for servers in range(limit):
        for kind in groups:
            able = [name for name in kind.providers if free_units[name] >= kind.units]
            if not able:
                return servers
            best = min(able, key=lambda name: (users[name], free_units[name], name))
            free_units[best] -= kind.units
    return limit


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
    alternatives: Sequence[Sequence[GroupCandidates]] = (),
) -> ProfileCapacity:
    """Return the number of servers that fit on each host, and in all.

    :param groups: the groups of a profile
    :param alternatives: of each group; empty: no group has any
    :param providers: providers of the whole cloud
    :param hosts: names of the hosts to count
    """
    by_host: dict[str, list[ProviderCapacity]] = defaultdict(list)
    for provider in providers:
        by_host[provider.hostname].append(provider)
    options = [
        (group, *(alternatives[index] if alternatives else ()))
        for index, group in enumerate(groups)
    ]
    problems = {name: _build_problem(options, by_host[name]) for name in sorted(hosts)}
    # Equal problems are solved once.
    solve = cache(lambda item: count_servers(item.kinds, dict(item.free)))
    results = tuple(
        _describe_host(name, groups, solve(problem))
        for name, problem in problems.items()
    )
    classes = {
        name
        for group in chain.from_iterable(options)
        for name in group.requirements.resource_classes
    }
    # An alternative that needs another number of units is not counted.
    is_complete = all(
        group.requirements.total == members[0].requirements.total
        for members in options
        for group in members
    )
    relevant = {
        name
        for name in problems
        if any(provider.resource_class in classes for provider in by_host[name])
    }
    return ProfileCapacity(
        servers=sum(host.servers for host in results),
        hosts=results,
        shortage=_find_main_shortage(results, relevant),
        is_exact=is_complete and all(host.is_exact for host in results),
    )


def _build_problem(
    options: Sequence[Sequence[GroupCandidates]], providers: Sequence[ProviderCapacity]
) -> _Problem:
    """Return the problem with short names of providers, so that equal hosts match.

    :param options: each group of a profile with its alternatives
    """
    ordered = sorted(
        providers,
        key=lambda item: (
            item.resource_class,
            [_count_free(group, item) for group in options],
        ),
    )
    names = {provider.rp_uuid: str(index) for index, provider in enumerate(ordered)}
    free: dict[str, int] = {}
    indices: dict[tuple[int, frozenset[str]], list[int]] = defaultdict(list)
    for index, group in enumerate(options):
        able = set()
        for provider in ordered:
            units = _count_free(group, provider)
            if units:
                name = names[provider.rp_uuid]
                able.add(name)
                # The groups are queried one after another; the least amount is safe.
                free[name] = min(units, free.get(name, units))
        # Old profiles may have a group without units, which no provider serves.
        units = max(1, group[0].requirements.total)
        indices[units, frozenset(able)].append(index)
    return _Problem(
        tuple(
            Kind(units, able, tuple(numbers))
            for (units, able), numbers in indices.items()
        ),
        tuple(sorted(free.items())),
    )


def _count_free(options: Sequence[GroupCandidates], provider: ProviderCapacity) -> int:
    """Return the units that a provider has for a group; 0: it cannot serve it now.

    :param options: the group and its alternatives
    """
    units = 0
    for group in options:
        requirements = group.requirements
        is_comparable = requirements.total == options[0].requirements.total
        if (
            is_comparable
            and len(requirements.amounts) == 1
            and obstacles.can_serve_now(group, provider)
        ):
            ((name, _),) = requirements.amounts
            offer = group.offers[provider.rp_uuid].get(name, 0)
            units = max(units, min(offer, provider.free_handles))
    return units


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
