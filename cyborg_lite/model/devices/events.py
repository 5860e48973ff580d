# SPDX-License-Identifier: Apache-2.0
"""History of devices: what happened to a device, and when."""

import enum
from dataclasses import dataclass
from datetime import datetime


class DeviceEventKind(enum.StrEnum):
    """Kinds of steps in the history of a device."""

    ADDED = 'added'
    """The agent reported the device for the first time; ``value`` is its health."""
    REMOVED = 'removed'
    """The host does not have the device any more, or was removed."""
    HEALTH_CHANGED = 'health-changed'
    """``value`` is the health."""
    NOTED = 'noted'
    """A health rule without an effect on the device began to hold."""
    QUARANTINED = 'quarantined'
    """A health rule or an operator keeps new instances from the device."""
    QUARANTINE_ENDED = 'quarantine-ended'
    STATUS_CHANGED = 'status-changed'
    """An operator set the status, which is ``value``."""
    OWNER_CHANGED = 'owner-changed'
    """Another service has begun (``reason``) or ended to manage the device."""
    MODE_CHANGED = 'mode-changed'
    """``value`` is the mode."""
    MODE_CHANGE_FAILED = 'mode-change-failed'
    """The change to the mode ``value`` failed."""
    CLEANING_STARTED = 'cleaning-started'
    CLEANED = 'cleaned'
    CLEANING_FAILED = 'cleaning-failed'
    UNIT_ACCEPTED = 'unit-accepted'
    """An operator declared a unit clean."""
    PROGRAMMING_STARTED = 'programming-started'
    """``value`` is the image."""
    PROGRAMMED = 'programmed'
    """``value`` is the image; a bind may have loaded it."""
    PROGRAMMING_FAILED = 'programming-failed'


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """A step in the history of a device."""

    kind: DeviceEventKind
    at: datetime
    hostname: str
    unit: str = ''  # key of the handle; empty: the whole device
    value: str = ''  # see DeviceEventKind; empty: the kind has no value
    reason: str = ''
