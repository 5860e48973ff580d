# SPDX-License-Identifier: Apache-2.0
"""Types of devices in words, with the profiles that name them. No host is named."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cyborg_lite.model.capacity.explanations import GroupCandidates, ProviderCapacity
from cyborg_lite.model.capacity.obstacles import can_serve_when_free
from cyborg_lite.model.profiles.device_profiles import Group

_VOWELS: Final = 'AEIO'
_SPELLED_WITH_VOWEL: Final = 'AEFHILMNORSX'  # of a name that is read letter by letter


@dataclass(frozen=True, slots=True)
class DeviceType:
    """A type of units that a device profile can request."""

    type: str  # of the device, such as GPU
    vendor: str
    model: str
    resource_class: str
    division: str = ''  # MIG profile or vGPU type; empty: a unit is no such division
    memory_mib: int | None = None  # of one unit; None: not known
    device_profiles: tuple[str, ...] = ()  # names of those that a unit can serve
    free_units: int = 0

    @property
    def description(self) -> str:
        """The unit in words, such as ``one 20 GB slice of an A100``."""
        size = f'{round(self.memory_mib / 1024)} GB ' if self.memory_mib else ''
        model = self.model or self.type
        if not self.division:
            return f'one {size}{model}'
        return f'one {size}slice of {_choose_article(model)} {model}'


def _choose_article(name: str) -> str:
    is_spelled = not name[1:2].islower()
    vowels = _SPELLED_WITH_VOWEL if is_spelled else _VOWELS
    return 'an' if name[:1].upper() in vowels else 'a'


def summarize_types(
    types: Mapping[str, DeviceType],
    providers: Iterable[ProviderCapacity],
    groups: Sequence[tuple[str, Mapping[str, str]]],
) -> tuple[DeviceType, ...]:
    """Return the types of the whole cloud with their profiles and free units.

    :param types: by uuid of the provider
    :param groups: groups of profiles, each with the name of its profile
    """
    requirements = [(name, Group.parse(group).requirements) for name, group in groups]
    free: Counter[DeviceType] = Counter()
    names: dict[DeviceType, set[str]] = {}
    for provider in providers:
        item = types.get(provider.rp_uuid)
        if item is None:
            continue
        is_open = provider.closed is None
        free[item] += min(provider.free, provider.free_handles) if is_open else 0
        names.setdefault(item, set()).update(
            name
            for name, request in requirements
            if len(request.amounts) == 1
            and can_serve_when_free(GroupCandidates(request), provider)
        )
    return tuple(
        replace(item, device_profiles=tuple(sorted(names[item])), free_units=free[item])
        for item in sorted(names, key=lambda item: (item.description, item.division))
    )
