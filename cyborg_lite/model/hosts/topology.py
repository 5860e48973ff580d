# SPDX-License-Identifier: Apache-2.0
"""Topology of a host: NUMA nodes, devices, deployables and units, with their users.

All pictures of a host, and the API, are built from these classes.
"""

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cyborg_lite.model.inventory.host_report import Health

BRIDGES_KEY: Final = 'pci_bridges'
"""Key of the bridges in the board info of a device."""

_NUMA_KEY: Final = 'numa_node'
_MAX_NUMA_DIGITS: Final = 4
_MAX_BRIDGES: Final = 16  # a longer chain would not fit into the board info
_ADDRESS: Final = re.compile(r'[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]')


class Availability(enum.StrEnum):
    """Availability of a unit. Each unit has exactly one of these values."""

    FREE = 'free'
    """An ARQ can claim it."""
    USED = 'used'
    """An ARQ owns it."""
    DIRTY = 'dirty'
    """Its host must release or clean it, or an operator must decide."""
    ALLOCATED = 'allocated'
    """A consumer without an ARQ has allocated it in Placement."""
    RESERVED = 'reserved'
    """Withheld: maintenance, foreign use, a conflict or the driver."""
    HOST_DOWN = 'host-down'
    """It would be free, but the agent of its host is down."""
    BROKEN = 'broken'
    """Missing on the host, or its device or region is unusable."""


@dataclass(frozen=True, slots=True)
class UnitUser:
    """The ARQ that owns a unit. Only administrators see it."""

    arq_uuid: str
    arq_state: str
    device_profile_name: str
    instance_uuid: str | None = None  # None: the ARQ was unbound
    project_id: str | None = None  # None: the ARQ has no project


@dataclass(frozen=True, slots=True)
class TopologyUnit:
    """A unit of a deployable: what one attach handle gives to an instance."""

    name: str  # key of the attach handle, such as the address of a function
    type: str  # of the attach handle, such as PCI or MDEV
    availability: Availability
    reason: str = ''  # why it is reserved or broken; empty: it is neither
    user: UnitUser | None = None  # None: no ARQ owns it


@dataclass(frozen=True, slots=True)
class TopologyDeployable:
    """A deployable of a device, such as a region or a type of vGPU."""

    uuid: str
    name: str
    parent_uuid: str | None  # None: it is the device itself
    resource_class: str | None  # None: it is not scheduled
    traits: tuple[str, ...] = ()
    total: int = 0  # units in Placement
    reserved: int = 0  # units that the driver reserves without naming them
    rp_uuid: str | None = None  # None: it has no provider
    bitstream_id: str | None = None  # None: no bitstream is loaded
    units: tuple[TopologyUnit, ...] = ()


@dataclass(frozen=True, slots=True)
class TopologyDevice:
    """A device with its deployables, parents before their children."""

    uuid: str
    address: str  # PCI address of the managing function, or the name of the device
    type: str
    vendor: str
    model: str
    driver: str
    status: str  # a DeviceStatus
    status_reason: str
    health: Health
    health_reason: str
    deployables: tuple[TopologyDeployable, ...] = ()
    # PCI addresses of the bridges above the device, the root port first. Empty: it is
    # no PCI device.
    pci_bridges: tuple[str, ...] = ()

    def list_children(self, parent: str | None) -> tuple[TopologyDeployable, ...]:
        """Return the deployables directly below one of them; None: the topmost."""
        return tuple(item for item in self.deployables if item.parent_uuid == parent)

    def count_units(self) -> dict[Availability, int]:
        """Return the number of units by availability."""
        return count_units(unit for item in self.deployables for unit in item.units)


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node with the devices that are connected to it."""

    number: int | None  # None: the platform reports no NUMA node
    devices: tuple[TopologyDevice, ...]


@dataclass(frozen=True, slots=True)
class HostTopology:
    """The devices of a host as the last report describes them."""

    hostname: str
    agent_state: str | None  # a ServiceState; None: no agent is known
    numa_nodes: tuple[NumaNode, ...] = ()

    @property
    def devices(self) -> Iterator[TopologyDevice]:
        """The devices of all NUMA nodes."""
        for node in self.numa_nodes:
            yield from node.devices


def group_by_numa_node(
    devices: Iterable[tuple[int | None, TopologyDevice]],
) -> tuple[NumaNode, ...]:
    """Return NUMA nodes in order of their numbers, devices by address.

    Devices without a NUMA node come last.
    """
    groups: dict[int | None, list[TopologyDevice]] = {}
    for number, device in devices:
        groups.setdefault(number, []).append(device)
    ordered = sorted(groups, key=lambda number: (number is None, number or 0))
    return tuple(
        NumaNode(
            number, tuple(sorted(groups[number], key=lambda device: device.address))
        )
        for number in ordered
    )


# Any: operators and drivers may have stored any JSON.
def read_numa_node(board: Mapping[str, Any] | None) -> int | None:
    """Return the NUMA node in the board info of a device; None: it names none."""
    text = str((board or {}).get(_NUMA_KEY, ''))
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_NUMA_DIGITS
    return int(text) if is_number else None


def format_bridges(addresses: Sequence[str]) -> str:
    """Return the bridges of a device as text for its board info."""
    return ' '.join(addresses[:_MAX_BRIDGES])


# Any: operators and drivers may have stored any JSON.
def read_bridges(board: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the bridges in the board info of a device, the root port first."""
    words = str((board or {}).get(BRIDGES_KEY, '')).split()[:_MAX_BRIDGES]
    return tuple(words) if all(map(_ADDRESS.fullmatch, words)) else ()


def count_units(units: Iterable[TopologyUnit]) -> dict[Availability, int]:
    """Return the number of units by availability; absent values are omitted."""
    counts: dict[Availability, int] = {}
    for unit in units:
        counts[unit.availability] = counts.get(unit.availability, 0) + 1
    return {state: counts[state] for state in Availability if state in counts}
