# SPDX-License-Identifier: Apache-2.0
"""Devices, deployables and their attributes as they are kept and shown."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage


class DeviceStatus(enum.StrEnum):
    """What the operator wants of a device."""

    ENABLED = 'enabled'
    MAINTAINING = 'maintaining'


@dataclass(frozen=True, slots=True)
class DeviceRecord:
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
    status_reason: str = ''  # of a maintenance, by who began it
    arqs: tuple[str, ...] = ()  # that hold a part; empty where not asked for
    updated_at: datetime | None = None
    usage: Usage | None = None  # None: its driver does not tell, or has not yet


@dataclass(frozen=True, slots=True)
class Attribute:
    uuid: str
    deployable_id: int
    key: str
    value: str
    created_at: datetime
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeployableRecord:
    id: int
    uuid: str
    device_id: int
    parent_id: int | None
    root_id: int | None
    name: str
    num_accelerators: int
    rp_uuid: str | None  # None: no provider, it only holds parts
    driver_name: str | None
    bitstream_id: str | None
    created_at: datetime
    updated_at: datetime | None = None
    attributes: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldHandle:
    """An attach handle and what its host must know to prepare or release it."""

    uuid: str
    arq_uuid: str
    hostname: str
    deployable_name: str
    driver: str
    address: str  # of the function that manages the device
    key: str
    type: str
    info: Mapping[str, str] = field(default_factory=dict)
    needs_host: bool = False
    preparing: bool = False  # a bind works on it on its host right now
    missing: bool = False  # its host does not report it any more
    turn: int = 0  # grows each time that it is given to a request; 0: not known
    host_silent: bool = False  # the agent of its host has missed its heartbeats
    load: LoadOrder | None = None  # what a boot takes from it; None: nothing of ours
    changed: bool = False  # its bind loaded something, which its release undoes
