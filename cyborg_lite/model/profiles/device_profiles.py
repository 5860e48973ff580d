# SPDX-License-Identifier: Apache-2.0
"""Device profiles and their groups, after validation.

A group is stored and sent as a mapping of strings; ``Group`` is its parsed form. The
grammar of device profiles is in ``grammar.py``.
"""

import enum
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final, NoReturn

from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.inventory.typed_attributes import AttributeDeclaration
from cyborg_lite.model.profiles.renames import RENAMED_KEYS

_RESOURCES: Final = 'resources:'
_TRAIT: Final = 'trait:'
_ACCEL: Final = 'accel:'
_FPGA: Final = 'FPGA'
_XILINX: Final = 'CUSTOM_FPGA_XILINX'
_BITSTREAM_PROPERTIES: Final = frozenset(
    {'bitstream_id', 'bitstream_name', 'function_id', 'function_name'}
)

TOLERATED: Final = ('degraded', 'none')
"""Devices beside healthy ones that a group accepts."""

BITSTREAM_KEYS: Final = frozenset(f'{_ACCEL}{name}' for name in _BITSTREAM_PROPERTIES)
"""Keys of a group that select a bitstream."""


class AttachTarget(enum.StrEnum):
    """Consumer of an accelerator. Binding and preparation do not depend on it."""

    VM = 'VM'
    """The instance: Nova attaches the accelerator."""
    HOST = 'host'
    """A process on the host. API 2.4 shows the attach handle; Nova does not see it."""
    NONE = 'none'
    """Nothing attaches it, for example a function in the packet path."""


@dataclass(frozen=True, slots=True)
class GroupRequirements:
    """The part of a group that one resource provider must satisfy."""

    amounts: tuple[tuple[str, int], ...]  # by resource class, sorted
    required: frozenset[str]  # traits
    forbidden: frozenset[str]  # traits

    @property
    def resource_classes(self) -> tuple[str, ...]:
        """The requested resource classes, sorted."""
        return tuple(name for name, _ in self.amounts)

    @property
    def total(self) -> int:
        """The requested units of all resource classes."""
        return sum(amount for _, amount in self.amounts)

    @property
    def arq_count(self) -> int:
        """The number of ARQs: one for each requested unit.

        A Xilinx FPGA has two functions, management and user, and each has its own ARQ.
        Clients of OpenStack Cyborg rely on that.
        """
        if _XILINX in self.required:
            return self.total + dict(self.amounts).get(_FPGA, 0)
        return self.total

    @property
    def unit_classes(self) -> tuple[str, ...]:
        """The resource class of the unit of each ARQ; empty for a companion ARQ."""
        units = [name for name, amount in self.amounts for _ in range(amount)]
        return (*units, *[''] * (self.arq_count - len(units)))

    @property
    def handle_count(self) -> int:
        """The number of attach handles that all ARQs of the group need."""
        return self.count_handles(self.arq_count)

    def count_handles(self, arqs: int) -> int:
        """Return the number of attach handles for some ARQs of the group.

        Each ARQ needs one handle, except with a Xilinx FPGA. Its management function
        could write the flash memory of the card, so no instance gets it. One of its two
        ARQs gets the user function. The companion ARQ is bound without a handle.
        """
        if not self.arq_count:
            return arqs
        return -(-arqs * self.total // self.arq_count)


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a device profile, parsed from its mapping."""

    requirements: GroupRequirements
    attach_target: AttachTarget
    properties: Mapping[str, str]  # values of the `accel:` keys, by name without prefix

    @classmethod
    def parse(cls, keys: Mapping[str, str]) -> 'Group':
        """Parse the stored mapping of a group.

        An unknown attach target, which only a foreign row can have, counts as VM. ARQs
        keep the keys of their creation, so former names of keys are accepted.
        """
        return _parse_group(tuple(keys.items()))

    @property
    def requests_bitstream(self) -> bool:
        """Return True if a bitstream must be loaded for an ARQ of the group."""
        return not _BITSTREAM_PROPERTIES.isdisjoint(self.properties)

    @property
    def requests_fpga(self) -> bool:
        """Return True if a resource class or a trait of the group names an FPGA."""
        requirements = self.requirements
        names = {*requirements.resource_classes, *requirements.required}
        return any(_FPGA in name for name in names | requirements.forbidden)


# The ARQs of a page have few different groups.
@functools.lru_cache(maxsize=1024)
def _parse_group(items: tuple[tuple[str, str], ...]) -> Group:
    keys = {RENAMED_KEYS.get(key, key): value for key, value in items}
    amounts = _select(keys, _RESOURCES)
    traits = _select(keys, _TRAIT)
    properties = _select(keys, _ACCEL)
    requirements = GroupRequirements(
        amounts=tuple(sorted((name, int(text)) for name, text in amounts.items())),
        required=frozenset(name for name in traits if traits[name] == 'required'),
        forbidden=frozenset(name for name in traits if traits[name] == 'forbidden'),
    )
    try:
        target = AttachTarget(properties.get('attach_target', AttachTarget.VM))
    except ValueError:
        target = AttachTarget.VM
    return Group(requirements, target, properties)


def _select(keys: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        key.removeprefix(prefix): value
        for key, value in keys.items()
        if key.startswith(prefix)
    }


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """A named list of groups, created by an administrator."""

    uuid: str
    name: str
    description: str | None
    # In the form of `Group.parse`. ARQs refer to a group by its index.
    groups: tuple[Mapping[str, str], ...]
    created_at: datetime
    updated_at: datetime | None = None
    enabled: bool = True  # False: no new ARQs are created from the profile
    is_public: bool = True  # False: for administrators and projects with access
    # For each group the groups that may be used instead, in order of preference;
    # empty: no group has any. See ``alternatives.py``.
    alternatives: tuple[tuple[Mapping[str, str], ...], ...] = ()
    generation: int = 0  # grows with each change

    def resource_classes(self) -> frozenset[str]:
        """Return the resource classes of all groups and alternatives."""
        return frozenset(
            name
            for group in (*self.groups, *chain.from_iterable(self.alternatives))
            for name in Group.parse(group).requirements.resource_classes
        )


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """New values of the fields that are listed in ``fields``.

    ``fields`` distinguishes a removed description from an unchanged one.
    """

    fields: tuple[str, ...]
    name: str | None = None
    description: str | None = None
    groups: tuple[Mapping[str, str], ...] | None = None
    enabled: bool | None = None
    is_public: bool | None = None
    alternatives: tuple[tuple[Mapping[str, str], ...], ...] = ()  # of the groups


def refuse(subject: str, fault: str) -> NoReturn:
    """Refuse a device profile.

    :param subject: what is wrong, with the name of its group
    :raises InvalidDeviceProfile: always
    """
    raise InvalidDeviceProfile(reason=f'{subject} {fault}')


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum sizes of a device profile; lengths are in characters."""

    groups: int = 32
    accelerators: int = 256  # units of all groups together
    name: int = 255
    description: int = 255
    value: int = 255  # of an `accel:` key, and of its name
    standard_traits: frozenset[str] = frozenset()  # accepted in `trait:` keys
    selector: int = 1024  # of `accel:selector`, where it is compiled
    # Attributes that selectors may use. None: selectors, sets and alternatives are not
    # part of the language, as before microversion 2.6.
    attributes: tuple[AttributeDeclaration, ...] | None = None
    # Names that are accepted after `accel:`; empty: any name.
    accel_keys: frozenset[str] = frozenset()
    # Value of `accel:tolerates` of a group that has none, from microversion 2.6 on.
    tolerates: str = TOLERATED[0]
    options: int = 8  # a group with its alternatives
    choices: int = 16  # of alternatives for all groups together
