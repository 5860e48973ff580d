# SPDX-License-Identifier: Apache-2.0
"""Devices, deployables, attributes and allocated handles as stored and shown."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import CleaningPolicy, Health
from cyborg_lite.model.inventory.typed_attributes import TypedAttribute


class DeviceStatus(enum.StrEnum):
    """Status that the operator sets."""

    ENABLED = 'enabled'
    MAINTAINING = 'maintaining'


NEW_DEVICE_REASON: Final = 'The device is new. Enable it to offer it.'
"""Status reason of a device that waits for the operator."""


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A stored device."""

    uuid: str
    type: str
    vendor: str
    model: str
    hostname: str
    std_board_info: str | None  # JSON text, as clients of version 2 read it
    vendor_board_info: str | None
    status: DeviceStatus
    health: Health
    health_reason: str
    created_at: datetime
    status_reason: str = ''  # of a maintenance, given by the operator
    arqs: tuple[str, ...] = ()  # that use the device; empty: the query was not detailed
    updated_at: datetime | None = None
    usage: Usage | None = None  # None: the driver has not reported telemetry
    health_since: datetime | None = None
    usage_at: datetime | None = None  # None: there is no telemetry
    generation: int = 0  # grows with each change; telemetry is no change
    quarantine: str = ''  # why no new instance gets it; empty: no quarantine


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a deployable."""

    uuid: str
    deployable_id: int
    key: str
    value: str
    created_at: datetime
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeployableRecord:
    """A stored deployable."""

    id: int
    uuid: str
    device_id: int
    parent_id: int | None
    root_id: int | None
    device_uuid: str
    parent_uuid: str | None
    root_uuid: str | None
    name: str
    num_accelerators: int
    rp_uuid: str | None  # None: no provider, it has children only
    driver_name: str | None
    bitstream_id: str | None
    created_at: datetime
    updated_at: datetime | None = None
    attributes: tuple[Attribute, ...] = ()
    typed_attributes: tuple[TypedAttribute, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfirmedHandle:
    """An attach handle that its host has prepared for an ARQ, as the agent answers."""

    uuid: str
    arq_uuid: str
    bind_generation: int
    # Its driver connects it once the instance is spawned. No part of what is compared.
    needs_connect: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class AllocatedHandle:
    """An attach handle that an ARQ owns, with the values that its host needs."""

    uuid: str
    arq_uuid: str
    hostname: str
    deployable_name: str
    driver: str
    # PCI address of the managing function of the device.
    control_address: str
    key: str
    type: str
    info: Mapping[str, str] = field(default_factory=dict)
    needs_host: bool = False
    preparing: bool = False  # a bind is preparing it on its host now
    missing: bool = False  # its host no longer reports it
    # Handle generation: grows with each claim; 0: not known.
    generation: int = 0
    # The agent of its host is down.
    host_down: bool = False
    load: LoadOrder | None = None  # to load again after a host reboot; None: nothing
    changed: bool = False  # its bind loaded a bitstream, which its release must undo
    managed: bool = True  # False: Nova must not rebind its driver
    for_guest: bool = True  # Nova attaches it to the instance
    instance_uuid: str = ''  # empty: not known, or the ARQ was unbound
    # What follows its release. The agent ignores it.
    cleaning: CleaningPolicy = CleaningPolicy.NEVER
    bind_generation: int = 0  # of the bind that has claimed it; 0: not known
    # First slot of the unit, which the host carves from an elastic card. None: the card
    # is not elastic.
    place: int | None = None

    @property
    def claim(self) -> tuple[str, str, int]:
        """The identity of the claim: handle, ARQ and handle generation."""
        return self.uuid, self.arq_uuid, self.generation

    @property
    def unit(self) -> tuple[str, str, str]:
        """The identity of the unit on its host, whatever uuid the handle has."""
        return self.control_address, self.deployable_name, self.key

    def confirm(self, *, needs_connect: bool = False) -> ConfirmedHandle:
        """Return the answer of an agent that has prepared the handle."""
        return ConfirmedHandle(
            self.uuid, self.arq_uuid, self.bind_generation, needs_connect
        )
