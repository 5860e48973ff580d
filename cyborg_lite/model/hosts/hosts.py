# SPDX-License-Identifier: Apache-2.0
"""Hosts as an operator sees them: their agent, devices and ARQs."""

from dataclasses import dataclass
from datetime import datetime

from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.services import ServiceState


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
