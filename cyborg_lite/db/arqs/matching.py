# SPDX-License-Identifier: Apache-2.0
"""Comparison of an ARQ with the deployable that Nova chose, and with its allocation.

Nova schedules by the device profile and the providers of an earlier moment. The profile
may have been edited since, and a card may have lost a trait.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cyborg_lite.db.profiles import selectors
from cyborg_lite.errors.arqs import (
    AllocationTooSmall,
    HostMismatch,
    NoFreeHandle,
    ProviderMismatch,
)
from cyborg_lite.model.profiles.device_profiles import Group
from cyborg_lite.model.profiles.selector_keys import find_selector
from cyborg_lite.model.profiles.selectors import matches
from cyborg_lite.model.providers.providers import valid_symbol
from cyborg_lite.model.traits import OWNER_CYBORG


@dataclass(frozen=True, slots=True)
class Allocated:
    """The instance of a bind and its providers, as Placement knows them."""

    project_id: str | None = None  # None: an administrator has named it in the bind
    # By provider and resource class. None: an instance needs no allocation.
    amounts: Mapping[str, Mapping[str, int]] | None = None
    # Traits of the providers that may be of another service.
    traits: Mapping[str, Collection[str]] = field(default_factory=dict)


# Any: the columns of an ARQ and its deployable in claiming.py.
def check_deployable(row: Any, allocated: Allocated) -> None:
    """Check that the deployable of an ARQ is on its host and satisfies its group.

    :raises HostMismatch: it is a device of another host
    :raises ProviderMismatch: it has another resource class, or lacks a trait
    """
    if row.chosen_host.casefold() != row.hostname.casefold():
        raise HostMismatch(
            provider=row.device_rp_uuid, host=row.chosen_host, actual=row.hostname
        )
    group = row.device_profile_group
    requirements = Group.parse(group).requirements
    resource_class = valid_symbol(row.resource_class or '')
    if {resource_class} != set(requirements.resource_classes):
        classes = ', '.join(requirements.resource_classes)
        _refuse(row, f'its resource class is {resource_class}, not {classes}')
    traits = _list_traits(row, group, allocated)
    if missing := sorted(requirements.required - traits):
        _refuse(row, f'it lacks {", ".join(missing)}')
    if excess := sorted(requirements.forbidden & traits):
        _refuse(row, f'it has {", ".join(excess)}')


def _list_traits(
    row: Any, group: Mapping[str, str], allocated: Allocated
) -> frozenset[str]:
    """Return the traits of the deployable, and those that others have set."""
    own = {OWNER_CYBORG, *map(valid_symbol, row.traits)}
    own |= selectors.list_taints(row.health)
    selector = find_selector(group)
    if selector is not None:
        listed = selectors.list_attributes(row, row.loadable)
        if matches(selector.expression, {item.name: item for item in listed}):
            own.add(selector.trait)
    foreign = set(allocated.traits.get(row.device_rp_uuid, ()))
    return frozenset(own | foreign - set(row.published or ()))


def _refuse(row: Any, reason: str) -> None:
    raise ProviderMismatch(
        provider=row.device_rp_uuid, group=row.device_profile_group_id, reason=reason
    )


def check_amounts(
    units: Iterable[tuple[str, str]], allocated: Allocated, exact: Collection[str] = ()
) -> None:
    """Check that an instance has all units allocated that its ARQs request.

    :param units: provider and resource class of each unit
    :param exact: providers of which the ARQs must request all allocated units
    :raises AllocationTooSmall: it has fewer
    :raises NoFreeHandle: it has more on a provider of ``exact``
    """
    if allocated.amounts is None:
        return
    for (provider, name), number in sorted(Counter(units).items()):
        amount = allocated.amounts.get(provider, {}).get(name, 0)
        if number > amount:
            raise AllocationTooSmall(
                requested=number, name=name, provider=provider, allocated=amount
            )
        if number < amount and provider in exact:
            raise NoFreeHandle(
                reason=f'The ARQs request {number} of {amount} units of {name} that the'
                f' instance has allocated on resource provider {provider}. Its device '
                f'profile has changed meanwhile.'
            )
