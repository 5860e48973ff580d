# SPDX-License-Identifier: Apache-2.0
"""Versioned notifications for other services: event types and payloads.

Each payload has a version. A change that an existing consumer may not understand raises
the major number; a new field raises the minor number. ``doc/notifications`` contains a
JSON schema of each payload.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cyborg_lite.model.devices.events import DeviceEventKind


class ObjectKind(enum.StrEnum):
    """First word of an event type."""

    ARQ = 'accelerator_request'
    DEVICE = 'device'
    CLEANING = 'cleaning'
    PROGRAMMING = 'programming'
    PROFILE = 'device_profile'


CREATED: Final = 'created'
STATE_CHANGED: Final = 'state_changed'
USED: Final = 'used'
UPDATED: Final = 'updated'
DELETED: Final = 'deleted'

DEVICE_EVENT_TYPES: Final[Mapping[DeviceEventKind, tuple[ObjectKind, str]]] = {
    **{
        kind: (ObjectKind.DEVICE, kind.value.replace('-', '_'))
        for kind in DeviceEventKind
    },
    DeviceEventKind.CLEANING_STARTED: (ObjectKind.CLEANING, 'started'),
    DeviceEventKind.CLEANED: (ObjectKind.CLEANING, 'succeeded'),
    DeviceEventKind.CLEANING_FAILED: (ObjectKind.CLEANING, 'failed'),
    DeviceEventKind.UNIT_ACCEPTED: (ObjectKind.CLEANING, 'accepted'),
    DeviceEventKind.PROGRAMMING_STARTED: (ObjectKind.PROGRAMMING, 'started'),
    DeviceEventKind.PROGRAMMED: (ObjectKind.PROGRAMMING, 'succeeded'),
    DeviceEventKind.PROGRAMMING_FAILED: (ObjectKind.PROGRAMMING, 'failed'),
}
"""Object and action of the event type of each step of a device."""


@dataclass(frozen=True, slots=True)
class ArqPayload:
    """Payload of the events of an ARQ."""

    uuid: str
    project_id: str | None
    resource_class: str  # empty: a companion ARQ, which has no unit
    device_profile: str
    state: str
    status_reason: str | None
    host: str | None  # None, with the next: not bound
    instance_uuid: str | None
    bound_at: str | None  # start of the current use; None: the unit is not used
    version: str = '1.0'


@dataclass(frozen=True, slots=True)
class UsedPayload:
    """Payload of ``accelerator_request.used``: a use of a unit that has ended."""

    uuid: str  # of the ARQ
    project_id: str | None
    resource_class: str
    device_profile: str
    host: str | None
    instance_uuid: str | None
    started_at: str
    ended_at: str
    version: str = '1.0'


@dataclass(frozen=True, slots=True)
class DevicePayload:
    """Payload of the events of devices, cleaning and programming."""

    uuid: str  # of the device
    host: str
    resource_classes: list[str]
    type: str
    vendor: str
    model: str
    unit: str
    value: str
    reason: str
    project_id: str | None = None  # a device has no project
    version: str = '1.0'


@dataclass(frozen=True, slots=True)
class ProfilePayload:
    """Payload of the events of a device profile."""

    uuid: str
    name: str
    resource_classes: list[str]
    groups: list[dict[str, str]]
    enabled: bool
    is_public: bool
    host: str | None = None  # a profile has neither host nor project
    project_id: str | None = None
    version: str = '1.0'


Payload = ArqPayload | UsedPayload | DevicePayload | ProfilePayload


def format_ms(moment: int | None) -> str | None:
    """Return a time in ISO 8601 with milliseconds, in UTC.

    :param moment: milliseconds since the epoch; None: no time
    """
    if moment is None:
        return None
    time = datetime.fromtimestamp(moment / 1000, UTC)
    return time.isoformat(timespec='milliseconds')


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification that waits to be sent."""

    id: int
    uuid: str  # the message id, which stays the same when it is sent again
    event_type: str
    payload: Mapping[str, Any]
    created_at: int  # milliseconds since the epoch


@dataclass(frozen=True, slots=True)
class Backlog:
    """The notifications that wait."""

    count: int
    age: float  # of the oldest, in seconds; 0: none waits
