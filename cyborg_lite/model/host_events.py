# SPDX-License-Identifier: Apache-2.0
"""What happened on a host: noted as it happens, told to the conductor in order."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


class HostEventKind(enum.StrEnum):
    """Also the steps that requests have in their history by it."""

    HOTPLUG = 'DeviceCame'
    LOSS = 'DeviceLost'
    HEALTH = 'HealthChanged'
    PREPARED = 'Prepared'
    RELEASED = 'Released'
    REBUILT = 'Rebuilt'
    NOT_REBUILT = 'NotRebuilt'


@dataclass(frozen=True, slots=True)
class HostEvent:
    """Numbers grow by one on each host, over restarts of its agent."""

    number: int
    kind: HostEventKind
    address: str  # of the function that manages the device
    at: datetime  # by the clock of the host
    arq_uuid: str | None = None  # None: it concerns whoever holds a part of the device
    reason: str = ''


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of the prepared handles of a host since it was booted."""

    host: str
    boot_id: str
    rebuilt: tuple[str, ...] = ()  # uuids of handles that are ready
    lost: Mapping[str, str] = field(default_factory=dict)  # why, by uuid
