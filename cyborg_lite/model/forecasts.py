# SPDX-License-Identifier: Apache-2.0
"""Data of a forecast: the capacity of device profiles after a change of hardware.

The change is not made. The rules are in ``forecasting.py``.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.inventory import HandleType
from cyborg_lite.model.modes import OfferedInventory
from cyborg_lite.model.server_capacity import ProfileCapacity
from cyborg_lite.model.typed_attributes import TypedAttribute


@dataclass(frozen=True, slots=True)
class NewDevice:
    """Equal devices that a host does not have yet."""

    hostname: str
    amounts: Mapping[str, int]  # units of each device, by resource class
    traits: tuple[str, ...] = ()
    attributes: tuple[TypedAttribute, ...] = ()
    handle_type: HandleType = HandleType.PCI
    count: int = 1


@dataclass(frozen=True, slots=True)
class HardwareChange:
    """The removal of a device, another mode of a device, or new devices."""

    device_uuid: str = ''  # empty: new devices
    mode: str = ''  # empty: the device is removed, or is new
    device: NewDevice | None = None  # None: a change of a present device


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """Changes of hardware, and the device profiles to count."""

    changes: tuple[HardwareChange, ...]
    profiles: tuple[str, ...] | None = None  # uuids; None: all profiles
    new_profile: DeviceProfile | None = None  # that does not exist; None: none


class ForecastResult(enum.StrEnum):
    """Effect of a change on a device profile."""

    GAINS = 'gains'
    LOSES = 'loses'
    UNCHANGED = 'unchanged'
    UNKNOWN = 'unknown'


@dataclass(frozen=True, slots=True)
class ChangeEffect:
    """The inventory that a change adds to a host and removes from it."""

    hostname: str
    device_uuid: str = ''  # empty: new devices
    mode: str = ''
    appears: tuple[OfferedInventory, ...] = ()
    vanishes: tuple[OfferedInventory, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileForecast:
    """The capacity of a device profile before and after the changes.

    The capacities have the hosts of the changes, and those whose number differs.
    """

    uuid: str  # empty: the profile does not exist
    name: str  # empty: the profile does not exist
    result: ForecastResult
    before: ProfileCapacity
    after: ProfileCapacity | None = None  # None: it is not known
    reasons: tuple[str, ...] = ()  # why the effect is not known


@dataclass(frozen=True, slots=True)
class Forecast:
    """The effects of changes on hosts and on device profiles."""

    effects: tuple[ChangeEffect, ...] = ()
    profiles: tuple[ProfileForecast, ...] = ()
