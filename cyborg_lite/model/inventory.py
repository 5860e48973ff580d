# SPDX-License-Identifier: Apache-2.0
"""What a host has, in the words of its drivers, and how it travels to the conductor."""

import enum
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar


class Health(enum.StrEnum):
    OK = 'ok'
    DEGRADED = 'degraded'
    BUSY = 'busy'
    FAILED = 'failed'
    GONE = 'gone'
    CONFLICT = 'conflict'  # another service manages it too


class HandleType(enum.StrEnum):
    """Nova attaches PCI only; it ignores an instance that holds any other type."""

    PCI = 'PCI'
    MDEV = 'MDEV'
    TEST_PCI = 'TEST_PCI'


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that a server can be given: an attach handle before it has a row."""

    key: str
    """What tells it from the other units of its deployable, the same at every scan:
    the address of a function, or `<address>/<n>` where units are interchangeable."""
    type: HandleType
    info: Mapping[str, str]
    """Exactly what Nova reads; every value a string, no ``0x``."""
    needs_host: bool = False  # the agent must prepare it before a guest may start
    managed: bool = True  # False: the consumer must not rebind its driver
    in_use: bool = False  # by somebody whom we do not know


@dataclass(frozen=True, slots=True)
class Deployable:
    """A part of a device that can be scheduled on its own, with the parts below it."""

    name: str  # unique in the cloud: `<host>_<address>[_<part>]`
    resource_class: str | None = None  # None: only holds parts, is never scheduled
    traits: tuple[str, ...] = ()
    total: int = 0
    reserved: int = 0
    units: tuple[Unit, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    parts: tuple['Deployable', ...] = ()

    @property
    def provider_uuid(self) -> str:
        """The same after a lost database, and the one that Cyborg's users have."""
        return str(uuid.uuid3(uuid.NAMESPACE_DNS, self.name))

    @property
    def withheld(self) -> int:
        """How much of the total nobody is given, as Placement will have it reserved."""
        strangers = sum(unit.in_use for unit in self.units)
        return min(self.total, self.reserved + strangers)

    def walk(self) -> Iterator['Deployable']:
        """This one and all below it, parents first."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Device:
    """A board."""

    type: str  # GPU, FPGA, AICHIP, QAT, NIC, SSD, PCI
    vendor: str
    model: str
    driver: str  # as in hardware tables, e.g. NVIDIA; shown as driver_name
    address: str  # of the function that manages it
    hardware_id: str  # serial or uuid where there is one, else the address
    root: Deployable
    std_board_info: Mapping[str, str] = field(default_factory=dict)
    vendor_board_info: str | None = None
    health: Health = Health.OK
    health_reason: str = ''


@dataclass(frozen=True, slots=True)
class HostReport:
    """All devices of one host at one moment."""

    VERSION: ClassVar[str] = '1.0'

    hostname: str
    boot_id: str
    devices: tuple[Device, ...]

    @property
    def digest(self) -> str:
        """Equal for equal inventories, in whatever order the drivers found them."""
        devices = sorted(
            (asdict(device) for device in self.devices),
            key=lambda device: (device['driver'], device['address']),
        )
        text = json.dumps(devices, sort_keys=True, separators=(',', ':'))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one function that a driver looked at, offered or not."""

    address: str
    ids: str  # `vendor:device`, 4 hex digits each, or what the driver calls it
    pci_class: str  # 6 hex digits, empty for what is not PCI
    driver: str  # entry point name of the driver that judged it
    reason: str  # why it is not offered; or what it is offered as
    device: Device | None = None  # None: nothing to report
