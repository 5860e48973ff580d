# SPDX-License-Identifier: Apache-2.0
"""Rules of forecasts: the capacity of device profiles after changes of hardware.

A new provider is assumed to offer all of its units at once. Where the change does not
tell if such a provider can serve a group, the result is unknown.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cyborg_lite.model.alternatives import Choice, apply_choice, list_choices
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.explanations import GroupCandidates, ProviderCapacity
from cyborg_lite.model.fitting import list_foreign_providers, warn_disabled
from cyborg_lite.model.forecasts import ForecastResult, ProfileForecast
from cyborg_lite.model.selector_keys import find_selector
from cyborg_lite.model.selectors import (
    Selector,
    evaluate,
    list_comparisons,
    list_computed_traits,
)
from cyborg_lite.model.server_capacity import (
    HostCapacity,
    ProfileCapacity,
    count_capacity,
)
from cyborg_lite.model.typed_attributes import TypedAttribute

Keys = Mapping[str, str]  # of a group
Groups = Sequence[Keys]


@dataclass(frozen=True, slots=True)
class AssumedProvider:
    """A provider that a change adds."""

    capacity: ProviderCapacity
    attributes: tuple[TypedAttribute, ...] = ()  # that are known
    # False: the agent of the host is not up, so that no selector matches.
    is_reliable: bool = True
    # False: the capacity counts handles of every type, and may be closed for guests.
    has_known_handles: bool = True


@dataclass(frozen=True, slots=True)
class AssumedHardware:
    """The providers and hosts that changes add and remove."""

    removed: frozenset[str] = frozenset()  # uuids of providers
    added: tuple[AssumedProvider, ...] = ()
    hosts: frozenset[str] = frozenset()  # names of the hosts of the changes


@dataclass(frozen=True, slots=True)
class Cloud:
    """The providers and hosts before the changes, and the candidates of groups."""

    providers: tuple[ProviderCapacity, ...]
    hosts: frozenset[str]
    find_candidates: Callable[[Keys], GroupCandidates]


def forecast_profile(
    profile: DeviceProfile, cloud: Cloud, hardware: AssumedHardware
) -> ProfileForecast:
    """Return the capacity of a profile before and after the changes."""
    before = _count(profile, cloud)
    reasons: list[str] = []
    after = _count_changed(profile, cloud, hardware, reasons)
    result = ForecastResult.UNKNOWN
    if after is not None:
        result = _compare(before, after, hardware.hosts)
        if result is ForecastResult.UNKNOWN:
            reasons.append('More servers than counted may fit before and after.')
    names = _select_hosts(before, after, hardware.hosts)
    return ProfileForecast(
        uuid=profile.uuid,
        name=profile.name,
        result=result,
        before=_keep_hosts(before, names),
        after=after and _keep_hosts(after, names),
        reasons=tuple(dict.fromkeys(reasons)),
    )


# --- counts of choices ---


def _list_options(
    profile: DeviceProfile, cloud: Cloud
) -> Iterator[tuple[Choice, Groups, list[GroupCandidates]]]:
    """Yield each choice of alternatives with its groups, the most preferred first."""
    for choice in list_choices(profile):
        groups = apply_choice(profile, choice).groups
        candidates = [cloud.find_candidates(keys) for keys in groups]
        yield choice if profile.alternatives else (), groups, candidates


def _count(profile: DeviceProfile, cloud: Cloud) -> ProfileCapacity:
    """Count with the most preferred choice that fits, or else with the first."""
    capacities = []
    for choice, _, candidates in _list_options(profile, cloud):
        capacity = _count_choice(
            profile, choice, candidates, cloud.providers, cloud.hosts
        )
        if capacity.servers:
            return capacity
        capacities.append(capacity)
    return capacities[0]


def _count_changed(
    profile: DeviceProfile,
    cloud: Cloud,
    hardware: AssumedHardware,
    reasons: list[str],
) -> ProfileCapacity | None:
    """Count as ``_count`` does, after the changes.

    :param reasons: gets the reasons for None
    :returns: None: the capacity is not known
    """
    present = (p for p in cloud.providers if p.rp_uuid not in hardware.removed)
    providers = (*present, *(provider.capacity for provider in hardware.added))
    hosts = cloud.hosts | hardware.hosts
    capacities = []
    for choice, groups, candidates in _list_options(profile, cloud):
        changed = []
        for index, keys in enumerate(groups):
            group = _change_candidates(keys, candidates[index], hardware)
            if isinstance(group, str):
                reasons.append(f'groups[{index}]: {group}')
            else:
                changed.append(group)
        if reasons:
            return None
        capacity = _count_choice(profile, choice, changed, providers, hosts)
        if capacity.servers:
            return capacity
        capacities.append(capacity)
    return capacities[0]


def _count_choice(
    profile: DeviceProfile,
    choice: Choice,
    candidates: Sequence[GroupCandidates],
    providers: Sequence[ProviderCapacity],
    hosts: Collection[str],
) -> ProfileCapacity:
    capacity = count_capacity(candidates, providers, hosts)
    foreign = list_foreign_providers(candidates, providers)
    warnings = (*warn_disabled(profile), *foreign)
    return replace(capacity, choice=choice, warnings=warnings)


# --- candidates after the changes ---


def _change_candidates(
    keys: Keys, group: GroupCandidates, hardware: AssumedHardware
) -> GroupCandidates | str:
    """Return the candidates after the changes, or why they are not known."""
    offers = {
        uuid: amounts
        for uuid, amounts in group.offers.items()
        if uuid not in hardware.removed
    }
    for provider in hardware.added:
        doubt = _find_doubt(keys, group, provider)
        if doubt is not None:
            return doubt
        capacity = provider.capacity
        if _has_resources(keys, group, capacity) and _matches(keys, provider):
            offers[capacity.rp_uuid] = {capacity.resource_class: capacity.total}
    return replace(group, offers=offers)


def _has_resources(
    keys: Keys, group: GroupCandidates, capacity: ProviderCapacity
) -> bool:
    """Check the units and traits, but not the selector of the group."""
    requirements = group.requirements
    if len(requirements.amounts) != 1:
        return False
    ((name, amount),) = requirements.amounts
    if capacity.resource_class != name or capacity.total < amount:
        return False
    computed = {key.removeprefix('trait:') for key in list_computed_traits(keys)}
    required = requirements.required - computed
    return required <= capacity.traits and not requirements.forbidden & capacity.traits


def _matches(keys: Keys, provider: AssumedProvider) -> bool | None:
    """Check whether a provider matches the selector of a group; None: unknown."""
    if not list_computed_traits(keys):
        return True
    if not provider.is_reliable:
        return False
    selector = find_selector(keys)
    if selector is None:
        return None
    attributes = {attribute.name: attribute for attribute in provider.attributes}
    result = evaluate(selector.expression, attributes)
    # Without a missing attribute, a comparison of different types has no result.
    return result if _list_missing(selector, provider) else result is True


def _find_doubt(
    keys: Keys, group: GroupCandidates, provider: AssumedProvider
) -> str | None:
    """Return why it is not known if a provider serves a group; None: it is known."""
    capacity = provider.capacity
    if not _has_resources(keys, group, capacity) or capacity.closed is not None:
        return None
    is_match = _matches(keys, provider)
    if is_match is None:
        return _describe_selector(keys, provider)
    is_closed = group.for_guest and capacity.closed_for_guest is not None
    if is_match and is_closed and not provider.has_known_handles:
        return (
            f'The agent does not report the type of the attach handles of the new '
            f'{capacity.resource_class} on host {capacity.hostname}, and Nova does not '
            f'attach every type there.'
        )
    return None


def _describe_selector(keys: Keys, provider: AssumedProvider) -> str:
    capacity = provider.capacity
    subject = f'of the new {capacity.resource_class} on host {capacity.hostname}'
    selector = find_selector(keys)
    if selector is None:
        return f'This release cannot evaluate the selector {subject}.'
    names = ', '.join(f'device.{name}' for name in _list_missing(selector, provider))
    return f'The selector compares {names}, and the value {subject} is not known.'


def _list_missing(selector: Selector, provider: AssumedProvider) -> list[str]:
    """Return the names of the compared attributes that are not known."""
    available = {attribute.name for attribute in provider.attributes}
    compared = {item.name for item in list_comparisons(selector.expression)}
    return sorted(compared - available)


# --- comparison ---


def _compare(
    before: ProfileCapacity, after: ProfileCapacity, hosts: Collection[str]
) -> ForecastResult:
    """Return the effect. Numbers that are lower bounds may leave it unknown."""
    if before.choice == after.choice:
        # The numbers of all other hosts are equal, whether they are exact or not.
        before, after = _keep_hosts(before, hosts), _keep_hosts(after, hosts)
    old, is_old_exact = _sum_hosts(before.hosts)
    new, is_new_exact = _sum_hosts(after.hosts)
    if new > old and is_old_exact:
        return ForecastResult.GAINS
    if new < old and is_new_exact:
        return ForecastResult.LOSES
    if new == old and is_old_exact and is_new_exact:
        return ForecastResult.UNCHANGED
    return ForecastResult.UNKNOWN


def _sum_hosts(hosts: Sequence[HostCapacity]) -> tuple[int, bool]:
    return sum(host.servers for host in hosts), all(host.is_exact for host in hosts)


def _select_hosts(
    before: ProfileCapacity, after: ProfileCapacity | None, hosts: Collection[str]
) -> frozenset[str]:
    """Return the hosts of the changes, and those whose number differs."""
    numbers = {host.hostname: (host.servers, host.is_exact) for host in before.hosts}
    differing = {
        host.hostname
        for host in (after.hosts if after else ())
        if numbers.get(host.hostname) != (host.servers, host.is_exact)
    }
    return frozenset(differing.union(hosts))


def _keep_hosts(capacity: ProfileCapacity, names: Collection[str]) -> ProfileCapacity:
    hosts = tuple(host for host in capacity.hosts if host.hostname in names)
    return replace(capacity, hosts=hosts)
