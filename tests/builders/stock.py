# SPDX-License-Identifier: Apache-2.0
"""Explanations and capacities of device profiles for a given stock of providers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cyborg_lite.model.capacity import fitting
from cyborg_lite.model.capacity.explanations import GroupCandidates, ProviderCapacity
from cyborg_lite.model.capacity.server_capacity import count_capacity
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Group


# Any: fields of `ProviderCapacity`.
def build_provider(hostname: str, units: int = 1, **fields: Any) -> ProviderCapacity:
    """Return a provider of free units of class PGPU with the trait ``CUSTOM_T4``."""
    values: dict[str, Any] = {
        'rp_uuid': f'{hostname}_0000:3b:00.0',
        'name': f'{hostname}_0000:3b:00.0',
        'hostname': hostname,
        'resource_class': 'PGPU',
        'traits': frozenset({'CUSTOM_T4'}),
        'total': units,
        'free': units,
        'free_handles': units,
    }
    return ProviderCapacity(**{**values, **fields})


# Any: `Explanation` and `ProfileCapacity`.
def build_answers(
    find_profile: Callable[[str], DeviceProfile], stock: Sequence[ProviderCapacity]
) -> dict[str, Any]:
    """Return functions that answer for profiles, by method of the conductor.

    :param find_profile: returns the profile with a uuid
    """

    def explain(uuid: str, hostname: str | None = None) -> Any:
        hosts = _select_hosts(stock, hostname)
        groups = _list_candidates(find_profile(uuid).groups, stock)
        return fitting.explain_fit(groups, stock, hosts)

    def count(uuid: str, hostname: str | None = None) -> Any:
        hosts = _select_hosts(stock, hostname)
        groups = _list_candidates(find_profile(uuid).groups, stock)
        return count_capacity(groups, stock, hosts)

    return {'explain_device_profile': explain, 'count_profile_capacity': count}


def _select_hosts(
    stock: Iterable[ProviderCapacity], hostname: str | None
) -> frozenset[str]:
    hosts = frozenset(provider.hostname for provider in stock)
    return hosts if hostname is None else hosts & {hostname}


def _list_candidates(
    groups: Iterable[Mapping[str, str]], stock: Iterable[ProviderCapacity]
) -> list[GroupCandidates]:
    """Return the candidates of each group, as Placement would."""
    candidates = []
    for group in groups:
        requirements = Group.parse(group).requirements
        offers = {
            provider.rp_uuid: {provider.resource_class: provider.free}
            for provider in stock
            if (provider.resource_class,) == requirements.resource_classes
            and provider.free >= requirements.amounts[0][1]
            and requirements.required <= provider.traits
        }
        candidates.append(GroupCandidates(requirements, offers))
    return candidates
