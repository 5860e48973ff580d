# SPDX-License-Identifier: Apache-2.0
"""Modes of devices: what a device offers in each, and changes from one to another.

A mode is a setting of a whole card that changes its inventory, such as the services of
a QuickAssist card or the layout of the GPU instances of an NVIDIA card.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cyborg_lite.model.inventory.host_report import Deployable

MODE_NAME: Final = re.compile(r'[\w.;:+-]{1,128}', re.ASCII)
"""Names that a mode can have."""


@dataclass(frozen=True, slots=True, order=True)
class OfferedInventory:
    """The inventory that one deployable of a device offers."""

    resource_class: str
    total: int
    traits: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ' '.join((f'{self.total} {self.resource_class}', *self.traits))


@dataclass(frozen=True, slots=True)
class DeviceMode:
    """A mode that a device can have."""

    name: str
    inventory: tuple[OfferedInventory, ...]  # in this mode
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class DeviceModes:
    """The modes of a device as its agent reports them."""

    address: str  # PCI address of the managing function
    inventory: tuple[OfferedInventory, ...]  # now
    modes: tuple[DeviceMode, ...]
    declared: str | None = None  # by an option of the driver; None: no mode
    stored: str | None = None  # set by an operator and restored; None: no mode


@dataclass(frozen=True, slots=True)
class ModeOrder:
    """A change of the mode of a device, as the conductor orders it."""

    address: str
    mode: str
    # Time in ms. An agent ignores an order that is older than the last one.
    ordered_at: int = 0


@dataclass(frozen=True, slots=True)
class ModeChange:
    """The last change of the mode of a device that has not succeeded yet."""

    mode: str
    state: str  # a JobState
    reason: str = ''  # why it failed or is delayed; empty: neither


@dataclass(frozen=True, slots=True)
class ModePlan:
    """The effect of a change of a device to one of its modes."""

    mode: str
    is_current: bool
    appears: tuple[OfferedInventory, ...] = ()
    vanishes: tuple[OfferedInventory, ...] = ()


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """The modes of a stored device, and what prevents a change."""

    device_uuid: str
    hostname: str
    address: str
    plans: tuple[ModePlan, ...]
    declared: str | None = None  # as in DeviceModes
    stored: str | None = None
    arqs: tuple[str, ...] = ()  # uuids of the ARQs that use the device
    change: ModeChange | None = None  # None: no change runs or has failed
    operation: str = ''  # uuid of the operation that the call has started; empty: none

    @property
    def current_modes(self) -> tuple[str, ...]:
        """Names that the present mode may have; the stored name excludes others."""
        names = tuple(plan.mode for plan in self.plans if plan.is_current)
        return (self.stored,) if self.stored in names else names

    @property
    def current(self) -> str | None:
        """Name of the present mode; None: it has no name."""
        return next(iter(self.current_modes), None)

    def find(self, mode: str) -> ModePlan | None:
        """Return the plan of a mode, or None if the device has no such mode."""
        return next((plan for plan in self.plans if plan.mode == mode), None)


def list_inventory(root: Deployable) -> tuple[OfferedInventory, ...]:
    """Return what a deployable and its children offer, sorted."""
    return tuple(
        sorted(
            OfferedInventory(
                item.resource_class, item.total, tuple(sorted(item.traits))
            )
            for item in root.walk()
            if item.resource_class is not None and item.total
        )
    )


def plan_modes(modes: DeviceModes) -> tuple[ModePlan, ...]:
    """Return what appears and vanishes with each mode of a device."""
    return tuple(
        ModePlan(
            mode.name,
            mode.is_current,
            _subtract(mode.inventory, modes.inventory),
            _subtract(modes.inventory, mode.inventory),
        )
        for mode in modes.modes
    )


def _subtract(
    items: Iterable[OfferedInventory], subtrahend: Iterable[OfferedInventory]
) -> tuple[OfferedInventory, ...]:
    """Return the items of one inventory that another one lacks, duplicates included."""
    remaining = list(subtrahend)
    missing = []
    for item in items:
        if item in remaining:
            remaining.remove(item)
        else:
            missing.append(item)
    return tuple(missing)
