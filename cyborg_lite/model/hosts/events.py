# SPDX-License-Identifier: Apache-2.0
"""Events of a host, which the agent records and sends to the conductor in order."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.limits import check_message


class HostEventKind(enum.StrEnum):
    """Kinds of host events. The values are also steps in the history of ARQs."""

    HOTPLUG = 'DeviceCame'
    LOSS = 'DeviceLost'
    HEALTH = 'HealthChanged'
    NOTED = 'Noted'
    QUARANTINE = 'Quarantined'
    RESET = 'ResetRequired'
    PREPARED = 'Prepared'
    RELEASED = 'Released'
    REBUILT = 'Rebuilt'
    NOT_REBUILT = 'NotRebuilt'


@dataclass(frozen=True, slots=True)
class HostEvent:
    """An event of a host. Its number is unique for the host and grows by one."""

    number: int
    kind: HostEventKind
    address: str  # control address of the device
    at: datetime  # by the clock of the host
    arq_uuid: str | None = None  # None: the event concerns all ARQs with the device
    reason: str = ''


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """Results for the prepared handles of a host after a host reboot."""

    host: str
    boot_id: str
    rebuilt: tuple[str, ...] = ()  # uuids of handles that are ready
    lost: Mapping[str, str] = field(default_factory=dict)  # reasons, by handle uuid
    connecting: tuple[str, ...] = ()  # uuids of ready handles to connect later


@dataclass(frozen=True, slots=True)
class HostHandle:
    """An attach handle that an agent stores as prepared, and the user it serves."""

    uuid: str
    arq_uuid: str
    instance_uuid: str  # empty: not known
    deployable_name: str
    key: str
    generation: int  # handle generation

    @classmethod
    def describe(cls, handle: AllocatedHandle) -> 'HostHandle':
        """Describe a handle that the agent stores."""
        return cls(**{item.name: getattr(handle, item.name) for item in fields(cls)})

    @property
    def unit(self) -> tuple[str, str]:
        """The unit on its host, whatever uuid the handle has."""
        return self.deployable_name, self.key


@dataclass(frozen=True, slots=True)
class HandleComparison:
    """Differences between the prepared handles of a host and its bound ARQs."""

    abandoned: tuple[str, ...] = ()  # uuids of handles that the host must release
    # Handles of bound ARQs that the host must have prepared, and does not mention.
    unmentioned: tuple[AllocatedHandle, ...] = ()


def check_events(host: str, events: Sequence[HostEvent]) -> None:
    """Check that events are in order and can be stored.

    :raises InvalidInput: a value is invalid, or the events are not in order
    """
    check_message(host, tuple(events), 'HostEvents.events')
    numbers = [event.number for event in events]
    if numbers != sorted(set(numbers)):
        raise InvalidInput(reason='The events are not in order.')
