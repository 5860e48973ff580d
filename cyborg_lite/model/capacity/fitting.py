# SPDX-License-Identifier: Apache-2.0
"""Decides for each host whether a device profile fits, and what is missing.

Placement is authoritative for free capacity. The database explains why capacity is
missing.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from cyborg_lite.model.capacity import obstacles
from cyborg_lite.model.capacity.explanations import (
    Explanation,
    FitResult,
    GroupCandidates,
    GroupFit,
    HostFit,
    ProviderCapacity,
    Reason,
    ReasonCode,
)
from cyborg_lite.model.profiles.device_profiles import BITSTREAM_KEYS, DeviceProfile
from cyborg_lite.model.profiles.selector_keys import SELECTING_KEYS
from cyborg_lite.model.profiles.selectors import list_computed_traits

LIMIT: Final = 1000
"""Candidates that Nova requests by default, see ``max_placement_results``."""


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


_MAX_NAMED: Final = 10  # providers that a warning names


def explain_fit(
    groups: Sequence[GroupCandidates],
    providers: Sequence[ProviderCapacity],
    hosts: Iterable[str],
) -> Explanation:
    """Explain for each host whether it can serve all groups.

    :param providers: providers of the whole cloud
    :param hosts: names of the hosts to explain
    """
    by_host: dict[str, list[ProviderCapacity]] = defaultdict(list)
    for provider in providers:
        by_host[provider.hostname].append(provider)
    impossible = list_impossible_groups(groups, providers) or _check_together(
        groups, by_host.values()
    )
    host_fits = tuple(
        _explain_host(name, groups, by_host[name]) for name in sorted(set(hosts))
    )
    fitting = sum(host.fits for host in host_fits)
    otherwise = FitResult.NEVER if impossible else FitResult.NOT_NOW
    return Explanation(
        result=FitResult.FITS if fitting else otherwise,
        summary=f'{fitting} of {len(host_fits)} hosts can serve an instance with this '
        f'profile now.',
        hosts=host_fits,
        warnings=(*impossible, *list_foreign_providers(groups, providers)),
        cautions=(
            *_list_unattachable(groups, providers),
            *_warn_candidates(groups, providers),
        ),
    )


def list_impossible_groups(
    groups: Sequence[GroupCandidates], providers: Sequence[ProviderCapacity]
) -> tuple[Reason, ...]:
    """Return a reason for each group that no provider could serve, even if free."""
    reasons = (
        obstacles.explain_all_providers(index, group, providers)
        for index, group in enumerate(groups)
    )
    return tuple(reason for reason in reasons if reason is not None)


def _check_together(
    groups: Sequence[GroupCandidates], hosts: Iterable[Sequence[ProviderCapacity]]
) -> tuple[Reason, ...]:
    """Return a reason if no host could serve all groups, even if free.

    Each group alone must be possible.
    """
    for providers in hosts:
        demands = []
        for group in groups:
            able = {
                provider.rp_uuid
                for provider in providers
                if obstacles.can_serve_when_free(group, provider)
            }
            demands.append((group.requirements.amounts[0][1], frozenset(able)))
        totals = {provider.rp_uuid: provider.total for provider in providers}
        if can_serve_together(demands, totals):
            return ()
    text = (
        'No host can serve all groups at once, even if all its accelerators are free.'
    )
    return (Reason(ReasonCode.NOT_TOGETHER, text),)


def list_foreign_providers(
    groups: Sequence[GroupCandidates], providers: Sequence[ProviderCapacity]
) -> Iterator[Reason]:
    """Yield a warning for each group that foreign providers may also serve."""
    own = {provider.rp_uuid for provider in providers}
    for index, group in enumerate(groups):
        foreign = tuple(sorted(group.offers.keys() - own))
        if foreign:
            text = (
                'Placement may also choose providers that this service does not '
                'manage. An instance that gets one fails to boot. Require a trait that '
                'only the intended devices have.'
            )
            yield Reason(ReasonCode.STRANGERS, text, index, providers=foreign)


def _list_unattachable(
    groups: Sequence[GroupCandidates], providers: Sequence[ProviderCapacity]
) -> Iterator[Reason]:
    """Yield a warning for each group whose handles Nova drops on some hosts."""
    for index, group in enumerate(groups):
        if not group.for_guest or len(group.requirements.amounts) != 1:
            continue
        matches = [
            item for item in providers if obstacles.can_serve_when_free(group, item)
        ]
        dropping = [
            item
            for item in matches
            if item.closed_for_guest is ReasonCode.MDEV_NOT_ATTACHED
        ]
        if dropping:
            text = (
                f'Nova drops the mdevs of {len(dropping)} of {len(matches)} providers '
                f'that match. {dropping[0].closed_for_guest_text}'
            )
            (name,) = group.requirements.resource_classes
            names = tuple(item.name for item in dropping[:_MAX_NAMED])
            code = ReasonCode.MDEV_NOT_ATTACHED
            yield Reason(code, text, index, name, providers=names)


def _warn_candidates(
    groups: Sequence[GroupCandidates], providers: Sequence[ProviderCapacity]
) -> tuple[Reason, ...]:
    """Return a warning if Placement may build more candidates than Nova requests.

    With ``group_policy=none`` Placement lists each way to assign the groups to the
    providers of one host. The number in the warning is an upper bound: groups that
    share a provider may need more units than it has.
    """
    by_host: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for provider in providers:
        by_host[provider.hostname].update(
            index
            for index, group in enumerate(groups)
            if any(group.offers.get(provider.rp_uuid, {}).values())
        )
    number = sum(
        math.prod(able[index] for index in range(len(groups)))
        for able in by_host.values()
    )
    if number <= LIMIT:
        return ()
    text = (
        f'Placement builds up to {number} allocation candidates for the profile. Nova '
        f'requests at most {LIMIT} by default, see [scheduler] max_placement_results, '
        f'so it does not consider all hosts, and the request is slow. Use fewer '
        f'groups: one group may request several units of one provider.'
    )
    return (Reason(ReasonCode.MANY_CANDIDATES, text),)


def list_profile_warnings(profile: DeviceProfile) -> Iterator[Reason]:
    """Yield a warning if the profile is disabled, and for keys without an effect."""
    if not profile.enabled:
        text = 'The profile is disabled. New instances cannot use it.'
        yield Reason(ReasonCode.DISABLED, text)
    for index, group in enumerate(profile.groups):
        keys = sorted((SELECTING_KEYS | BITSTREAM_KEYS) & group.keys())
        if keys and not list_computed_traits(group):
            text = (
                f'Nova chooses a provider without regard to {", ".join(keys)}, because '
                f'a microversion before 2.6 has set the groups. Set them again.'
            )
            yield Reason(ReasonCode.NOT_CONSIDERED, text, index)


def _explain_host(
    hostname: str,
    groups: Sequence[GroupCandidates],
    providers: Sequence[ProviderCapacity],
) -> HostFit:
    group_fits = tuple(
        _explain_group(index, group, providers) for index, group in enumerate(groups)
    )
    if not all(group.fits for group in group_fits):
        return HostFit(hostname, False, group_fits)
    demands, free = [], {}
    for group in groups:
        ((name, amount),) = group.requirements.amounts
        able = {
            provider.rp_uuid
            for provider in providers
            if obstacles.can_serve_now(group, provider)
        }
        demands.append((amount, frozenset(able)))
        free.update({uuid: group.offers[uuid].get(name, 0) for uuid in able})
    if can_serve_together(demands, free):
        return HostFit(hostname, True, group_fits)
    text = 'Each group fits alone, but too few units are free for all groups at once.'
    reason = Reason(ReasonCode.NOT_TOGETHER, text)
    return HostFit(hostname, False, group_fits, (reason,))


def _explain_group(
    index: int, group: GroupCandidates, providers: Sequence[ProviderCapacity]
) -> GroupFit:
    mixture = obstacles.check_single_class(group.requirements, index)
    if mixture is not None:
        return GroupFit(index, False, (mixture,))
    if any(obstacles.can_serve_now(group, provider) for provider in providers):
        return GroupFit(index, True)
    (name,) = group.requirements.resource_classes
    reasons = [
        obstacles.explain_provider(index, group, provider)
        for provider in providers
        if provider.resource_class == name
    ]
    if not reasons:
        text = f'The host has no {name}.'
        reasons = [Reason(ReasonCode.MISSING_CLASS, text, index, name)]
    return GroupFit(index, False, _merge_reasons(reasons))


def _merge_reasons(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    providers: dict[Reason, list[str]] = defaultdict(list)
    for reason in reasons:
        providers[replace(reason, providers=())] += reason.providers
    return tuple(
        replace(reason, providers=tuple(names)) for reason, names in providers.items()
    )
