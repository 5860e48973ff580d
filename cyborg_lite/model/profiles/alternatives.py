# SPDX-License-Identifier: Apache-2.0
"""Alternatives of the groups of a device profile.

A group of a profile may have other groups that can be used instead of it. The group and
its alternatives have an index in the order of preference; 0 is the group itself. A
choice has one index for each group of the profile.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, Final

from cyborg_lite.model.profiles.device_profiles import (
    DeviceProfile,
    Group,
    Limits,
    refuse,
)
from cyborg_lite.model.text import format_count

KEY: Final = 'alternatives'
"""Key of a group in a request and a response; the value is a list of groups."""

Keys = Mapping[str, str]  # of a group
Choice = tuple[int, ...]


def list_options(profile: DeviceProfile, index: int) -> tuple[Keys, ...]:
    """Return a group and its alternatives, in the order of preference."""
    alternatives = profile.alternatives[index] if profile.alternatives else ()
    return profile.groups[index], *alternatives


def list_all_groups(profile: DeviceProfile) -> tuple[Keys, ...]:
    """Return the groups of a profile with all alternatives."""
    further = (group for groups in profile.alternatives for group in groups)
    return *profile.groups, *further


# Any: a text, or the list of alternatives.
def join_alternatives(profile: DeviceProfile) -> list[dict[str, Any]]:
    """Return the groups of a profile with the key of their alternatives."""
    if not profile.alternatives:
        return [dict(group) for group in profile.groups]
    pairs = zip(profile.groups, profile.alternatives, strict=True)
    return [
        {**group, KEY: [dict(alternative) for alternative in alternatives]}
        if alternatives
        else dict(group)
        for group, alternatives in pairs
    ]


def list_choices(profile: DeviceProfile) -> Iterator[Choice]:
    """Yield all choices, the most preferred one first.

    The preferences of a group have precedence over those of the groups after it.
    """
    numbers = (len(list_options(profile, i)) for i in range(len(profile.groups)))
    yield from product(*map(range, numbers))


def apply_choice(profile: DeviceProfile, choice: Sequence[int]) -> DeviceProfile:
    """Return the profile with the groups of a choice and without alternatives.

    An index that does not exist counts as 0: the profile may have changed.
    """
    groups = []
    for index, group in enumerate(profile.groups):
        number = choice[index] if index < len(choice) else 0
        options = list_options(profile, index)
        groups.append(options[number] if 0 <= number < len(options) else group)
    return replace(profile, groups=tuple(groups), alternatives=())


def find_alternative(
    options: Sequence[Keys], allocated: Mapping[str, int], traits: Collection[str]
) -> int | None:
    """Return the index of the most preferred group that a provider satisfies.

    :param allocated: amounts that the instance has on the provider, by resource class
    :param traits: of the provider
    :returns: None: the provider satisfies none of the groups
    """
    for index, keys in enumerate(options):
        group = Group.parse(keys).requirements
        has_units = all(allocated.get(name, 0) >= n for name, n in group.amounts)
        has_traits = group.required.issubset(traits)
        if has_units and has_traits and group.forbidden.isdisjoint(traits):
            return index
    return None


def check_alternatives(
    groups: Sequence[Keys], alternatives: Sequence[Sequence[Keys]], limits: Limits
) -> None:
    """Check the alternatives of all groups of a profile.

    Nova does not say for which build it creates ARQs. The choice may have changed since
    Nova read the profile, so all alternatives must need the same number of ARQs. Nova
    then has an ARQ for each unit, and the bind corrects which alternative it is.

    :raises InvalidDeviceProfile: an alternative needs another number of ARQs, is the
        same as another one, or there are too many choices
    """
    number = 1
    for index, (group, alternative_groups) in enumerate(
        zip(groups, alternatives, strict=True)
    ):
        number *= 1 + len(alternative_groups)
        _check_group(f'groups[{index}]', (group, *alternative_groups))
    if number > limits.choices:
        fault = f'have {number} combinations, at most {limits.choices} are allowed'
        refuse('the alternatives of all groups', fault)


def _check_group(name: str, options: Sequence[Keys]) -> None:
    parsed = [Group.parse(keys) for keys in options]
    first = parsed[0].requirements.arq_count
    for index, group in islice(enumerate(parsed), 1, None):
        title = f'{name}.{KEY}[{index - 1}]'
        count = group.requirements.arq_count
        if count != first:
            fault = (
                f'needs {format_count(count, "ARQ")}, but {name} needs {first}; all '
                'alternatives of a group must need the same number'
            )
            refuse(title, fault)
        if group.requirements in [earlier.requirements for earlier in parsed[:index]]:
            fault = (
                'has the same resources and traits as a group that is preferred to it'
            )
            refuse(title, fault)
