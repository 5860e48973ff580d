# SPDX-License-Identifier: Apache-2.0
"""Providers of cards with their capacity, and what Placement offers of them."""

from collections.abc import Sequence
from typing import Any

from cyborg_lite.model.capacity.explanations import GroupCandidates, ProviderCapacity
from cyborg_lite.model.profiles.device_profiles import Group


# Any: fields of a provider.
def build_provider(name: str, host: str = 'h1', **fields: Any) -> ProviderCapacity:
    """Return the provider of a card with one free unit of PGPU."""
    return ProviderCapacity(
        **{
            'rp_uuid': name,
            'name': name,
            'hostname': host,
            'resource_class': 'PGPU',
            'traits': frozenset(),
            'total': 1,
            'free': 1,
            'free_handles': 1,
            **fields,
        }
    )


def build_group(units: int = 1, **traits: str) -> dict[str, str]:
    """Return a group of units of PGPU, with its words for traits."""
    keys = {f'trait:{name}': value for name, value in traits.items()}
    return {'resources:PGPU': str(units), **keys}


def list_candidates(
    group: dict[str, str], providers: Sequence[ProviderCapacity]
) -> GroupCandidates:
    """Return the candidates of a group as Placement lists them."""
    requirements = Group.parse(group).requirements
    offers = {
        provider.rp_uuid: {name: provider.free}
        for name, amount in requirements.amounts[:1]
        for provider in providers
        if provider.resource_class == name
        and provider.free >= amount
        and not provider.closed
        and requirements.required <= provider.traits
        and not requirements.forbidden & provider.traits
    }
    return GroupCandidates(requirements, offers)
