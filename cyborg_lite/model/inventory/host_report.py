# SPDX-License-Identifier: Apache-2.0
"""Inventory of a host as drivers report it and agents send it."""

import enum
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final

from cyborg_lite.model.inventory.typed_attributes import TypedAttribute


class Health(enum.StrEnum):
    """Health of a device."""

    OK = 'ok'
    DEGRADED = 'degraded'
    BUSY = 'busy'
    WITHHELD = 'withheld'  # a health rule keeps it from new instances
    FAILED = 'failed'
    GONE = 'gone'
    CONFLICT = 'conflict'  # another service also manages the device


UNUSABLE_HEALTH: Final = (Health.FAILED, Health.GONE)
"""Health of a device that no instance can use."""
CLOSED_HEALTH: Final = (*UNUSABLE_HEALTH, Health.WITHHELD)
"""Health of a device that no new instance gets."""

NO_PRIVILEGES: Final = 'The agent has no privileges to prepare it'
"""Start of the health reason of a device for which a privileges file is missing."""


class HandleType(enum.StrEnum):
    """Types of attach handles.

    Since 34.0.0 Nova attaches PCI and MDEV, and leaves out other types. Before, Nova
    attaches PCI, and nothing at all to an instance with a handle of another type.
    """

    PCI = 'PCI'
    MDEV = 'MDEV'
    TEST_PCI = 'TEST_PCI'
    NVMF = 'NVMF'  # a subsystem of an NVMe-oF target
    VHOST_USER = 'VHOST_USER'  # a socket of a vhost-user device


class CleaningPolicy(enum.StrEnum):
    """The occasion at which a unit is cleaned."""

    NEVER = 'never'
    """The next user gets the unit as the last one left it."""
    AFTER_USE = 'after-use'
    ALWAYS = 'always'
    """After each use, and before the first one."""
    ONE_TIME = 'one-time'
    """After a use only an operator offers the unit again."""


@dataclass(frozen=True, slots=True)
class AttachHandle:
    """An attach handle as reported by a driver: what Nova can attach to an instance."""

    key: str
    """Unique within the deployable, and equal in every scan: the address of a function,
    or `<address>/<n>` for interchangeable handles."""
    type: HandleType
    info: Mapping[str, str]
    """The values that Nova reads; all are strings, without ``0x``."""
    needs_host: bool = False  # the agent must prepare it before the instance starts
    managed: bool = True  # False: Nova must not rebind its driver
    in_use: bool = False  # by a foreign consumer
    # Other than NEVER: the driver is ``CleansHandles``.
    cleaning: CleaningPolicy = CleaningPolicy.NEVER


@dataclass(frozen=True, slots=True)
class Deployable:
    """A part of a device that can be scheduled on its own, with its children."""

    name: str  # unique in the cloud: `<host>_<address>[_<part>]`
    resource_class: str | None = None  # None: has children only, is never scheduled
    traits: tuple[str, ...] = ()
    total: int = 0
    reserved: int = 0  # units that the driver withholds without naming them
    handles: tuple[AttachHandle, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: tuple['Deployable', ...] = ()
    typed_attributes: tuple[TypedAttribute, ...] = ()  # what selectors compare

    @property
    def provider_uuid(self) -> str:
        """Uuid of the provider, derived from the name as OpenStack Cyborg does.

        It stays the same if the database is lost.
        """
        return str(uuid.uuid3(uuid.NAMESPACE_DNS, self.name))

    @property
    def unavailable(self) -> int:
        """Units to reserve in Placement, including those of foreign consumers."""
        foreign = sum(handle.in_use for handle in self.handles)
        return min(self.total, self.reserved + foreign)

    def walk(self) -> Iterator['Deployable']:
        """Yield the deployable and all its descendants, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Device:
    """A device, such as a PCI card, with its tree of deployables."""

    type: str  # GPU, FPGA, AICHIP, QAT, NIC, SSD, PCI
    vendor: str
    model: str
    driver: str  # name in the hardware tables, e.g. NVIDIA; shown as driver_name
    # PCI address of the managing function.
    control_address: str
    hardware_id: str  # serial number or uuid if it has one, else the control address
    root: Deployable
    std_board_info: Mapping[str, str] = field(default_factory=dict)
    vendor_board_info: str | None = None
    health: Health = Health.OK
    health_reason: str = ''


def _list_fields(record: Any) -> dict[str, Any]:
    return {item.name: getattr(record, item.name) for item in fields(record)}


_encode: Final = json.JSONEncoder(
    sort_keys=True, separators=(',', ':'), default=_list_fields
).encode


@dataclass(frozen=True)
class HostReport:
    """Inventory report of one host."""

    hostname: str
    boot_id: str
    devices: tuple[Device, ...]
    identity: str = ''  # of the agent; empty: not known
    # Rises with each report of the agent, also across restarts. 0: not known.
    number: int = 0
    # Digest by the agent, whose release may know more fields. Empty: not known.
    agent_digest: str = ''

    @cached_property
    def digest(self) -> str:
        """Hash of the devices, independent of their order."""
        if self.agent_digest:
            return self.agent_digest
        devices = sorted(
            self.devices, key=lambda device: (device.driver, device.control_address)
        )
        return hashlib.sha256(_encode(devices).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """Result of a scan for one function: why a driver offers it or not."""

    address: str
    ids: str  # `vendor:device`, 4 hex digits each, or what the driver calls it
    pci_class: str  # 6 hex digits; empty if not PCI
    driver: str  # entry point name of the driver
    reason: str  # why the function is not offered, or how it is offered
    device: Device | None = None  # None: no device is reported
