# SPDX-License-Identifier: Apache-2.0
"""A daemon as the conductor knows it."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cyborg_lite.model.usage import Usage


class ServiceState(enum.StrEnum):
    UP = 'up'
    DOWN = 'down'
    """Its heartbeats are missed; what it looks after may not be as we believe."""


@dataclass(frozen=True, slots=True)
class Service:
    uuid: str
    binary: str  # cyborg-lite-conductor, cyborg-lite-agent
    host: str
    version: str
    state: ServiceState
    started_at: datetime
    heartbeat_at: datetime
    digest: str | None = None  # agents: of the inventory that the database holds
    boot_id: str | None = None  # agents


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a heartbeat says of a host, beside that its agent lives."""

    boot_id: str = ''  # another one after each boot; empty: the host does not say
    # By address of the device; those that changed since they were last told.
    figures: Mapping[str, Usage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pulse:
    """A heartbeat without news: all that it says was said before."""

    host: str
    version: str
    digest: str
    boot_id: str
