# SPDX-License-Identifier: Apache-2.0
"""Daemons of the service, the heartbeats that they send, and their hosts."""

import base64
import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final, NamedTuple

from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark

AGENT: Final = 'cyborg-lite-agent'
CONDUCTOR: Final = 'cyborg-lite-conductor'
_TOKEN_BYTES: Final = 6


class ServiceState(enum.StrEnum):
    """States of a daemon. DOWN means that its heartbeats are overdue."""

    UP = 'up'
    DOWN = 'down'
    STOPPED = 'stopped'
    """The agent has said that it stops. Its host counts as down when the next
    heartbeats are overdue, so that a restart has no effect on Placement."""


@dataclass(frozen=True, slots=True)
class Service:
    """A daemon as stored and shown."""

    uuid: str
    binary: str  # AGENT or CONDUCTOR
    host: str
    version: str
    state: ServiceState
    started_at: datetime
    heartbeat_at: datetime
    digest: str | None = None  # of the stored host report; None for conductors
    boot_id: str | None = None  # of the host; None for conductors


@dataclass(frozen=True, slots=True)
class HeartbeatDetails:
    """State of a host that an agent sends with a heartbeat."""

    OMITS_DEFAULTS: ClassVar[bool] = True  # in messages

    boot_id: str = ''  # changes with each host reboot; empty: not known
    # By control address of the device; only values changed since the last heartbeat.
    telemetry: Mapping[str, Usage] = field(default_factory=dict)
    identity: str = ''  # of the agent; empty: not known
    started: bool = False  # True: the agent has started since the last heartbeat
    mark: DatabaseMark = NO_MARK  # that the agent remembers
    machine: str = ''  # name of the machine, at the start; empty: not known


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat that repeats the stored values, so that it can be batched."""

    host: str
    version: str
    digest: str
    boot_id: str
    identity: str = ''

    @property
    def token(self) -> str:
        """Short hash of the values, by which an agent repeats them."""
        values = self.host, self.version, self.digest, self.boot_id, self.identity
        digest = hashlib.sha256('\0'.join(values).encode()).digest()
        return base64.b64encode(digest[:_TOKEN_BYTES]).decode()


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """The record of the agent of a host in the database."""

    digest: str | None  # of the stored host report; None: it must be sent
    boot_id: str | None  # None: not reported yet
    identity: str | None  # None: not known
    state: ServiceState
    report_number: int
    machine: str = ''  # empty: not known

    def refuses(self, identity: str) -> bool:
        """Check whether an agent must not speak for the host.

        :param identity: empty: not known, which is not refused
        """
        is_same = self.identity in (None, identity)
        return bool(identity) and not is_same and self.state is ServiceState.UP


def name_agent(identity: str, machine: str) -> str:
    """Return a name that tells an agent from another one with the same host name."""
    return f'{machine or "an unknown machine"} ({identity[:8]})'


# --- faults of daemons ---


class FaultKey(NamedTuple):
    """Identifies a fault."""

    kind: str  # a value of AttentionKind
    host: str  # [DEFAULT] host of the daemon; empty: not known
    name: str  # of the daemon


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a daemon that a conductor has seen."""

    kind: str
    host: str
    name: str
    reason: str
    since: datetime | None = field(default=None, compare=False)  # None: not stored yet


@dataclass(frozen=True, slots=True)
class HostSummary:
    """A host with an agent or devices."""

    name: str
    agent: ServiceState | None  # None: the host has no agent
    devices: int
    maintaining: int  # devices in maintenance
    arqs: int  # ARQs of instances on the host
    version: str | None = None  # of the agent; None: there is none, likewise
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None

    @property
    def status(self) -> DeviceStatus | None:
        """The status of all devices; None: they differ, or there are none."""
        if not self.devices or 0 < self.maintaining < self.devices:
            return None
        return DeviceStatus.MAINTAINING if self.maintaining else DeviceStatus.ENABLED
