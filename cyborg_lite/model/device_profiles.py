# SPDX-License-Identifier: Apache-2.0
"""Device profiles: what an admin may ask for, and how many accelerators that makes.

How a client writes one is in ``profile_grammar.py``.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_RESOURCES: Final = 'resources:'
_XILINX: Final = 'trait:CUSTOM_FPGA_XILINX'
_FPGA: Final = 'resources:FPGA'


class AttachTarget(enum.StrEnum):
    """Whom an accelerator is for; it is taken and prepared for each of them alike."""

    VM = 'VM'
    """The guest: Nova attaches it."""
    HOST = 'host'
    """Something on the host: who asks at 2.4 reads what it was given, Nova does not."""
    NONE = 'none'
    """Nobody who attaches it, e.g. a function in the path of the packets."""


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    uuid: str
    name: str
    description: str | None
    groups: tuple[Mapping[str, str], ...]  # the order is part of the contract
    created_at: datetime
    updated_at: datetime | None = None
    enabled: bool = True  # False: it makes no new accelerator requests
    is_public: bool = True  # False: for admins and the projects of its access list

    def resource_classes(self) -> frozenset[str]:
        """All that some group asks for."""
        return frozenset(name for group in self.groups for name, _ in amounts(group))


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """New values of the fields that ``fields`` names; of the others nothing is meant.

    ``fields`` tells a description that is taken away from one that is left.
    """

    fields: tuple[str, ...]
    name: str | None = None
    description: str | None = None
    groups: tuple[Mapping[str, str], ...] | None = None
    enabled: bool | None = None
    is_public: bool | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a profile may have and how large it may be; lengths are in characters."""

    groups: int = 32
    accelerators: int = 256  # units of all groups together
    name: int = 255
    description: int = 255
    value: int = 255  # of an `accel:` key, and of its name
    standard_traits: frozenset[str] = frozenset()  # that `trait:` keys may name


def amounts(group: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Each resource class of a group, with how many of it the group asks for."""
    for key, value in group.items():
        if key.startswith(_RESOURCES):
            yield key.removeprefix(_RESOURCES), int(value)


def attach_target(group: Mapping[str, str]) -> AttachTarget:
    """Whom the accelerators of the group are for."""
    try:
        return AttachTarget(group.get('accel:attach_target', AttachTarget.VM))
    except ValueError:  # of a row that was not written by us
        return AttachTarget.VM


def arq_count(group: Mapping[str, str]) -> int:
    """How many accelerator requests a group makes: one for each unit it asks for.

    A Xilinx FPGA is two functions, management and user, and each has a request of its
    own. Clients of the deployed service count on that.
    """
    count = sum(amount for _, amount in amounts(group))
    if group.get(_XILINX) == 'required':
        count += int(group.get(_FPGA, 0))
    return count


def handle_count(group: Mapping[str, str], requests: int) -> int:
    """How many attach handles so many requests of a group get on one provider.

    One each, but for a Xilinx FPGA: its management function could write the flash of
    the card and goes to no guest, so that of its two requests one has the user function
    and the other one, its companion, is bound with nothing of its own.
    """
    made = arq_count(group)
    if not made:
        return requests
    units = sum(amount for _, amount in amounts(group))
    return -(-requests * units // made)
