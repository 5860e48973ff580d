# SPDX-License-Identifier: Apache-2.0
"""Components of an agent that prepare handles."""

from collections.abc import Mapping
from pathlib import Path

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.arqs.recovery import HostRecovery
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.host.sysfs import Host


class AgentParts:
    """Components of one process of an agent, which has scanned its host once."""

    def __init__(
        self,
        host: Host,
        drivers: Mapping[str, Driver],
        state_path: Path,
        longest_wait: float = 20.0,
        patience: float = 3600.0,
    ) -> None:
        """Build the components.

        :param longest_wait: seconds for the lock of a device
        :param patience: seconds until a handle that cannot be rebuilt is lost
        """
        self.cache, self.journal = Cache(state_path), Journal(state_path)
        self.cache.open()
        self.journal.open()
        self.discovery = Discovery(host, drivers, 60.0)
        self.discovery.scan()
        self.locks = DeviceLocks(longest_wait)
        state = self.discovery, self.cache, self.journal
        self.preparation = Preparation(*state, self.locks)
        self.recovery = HostRecovery(
            self.discovery, self.preparation, self.cache, self.journal, patience
        )
