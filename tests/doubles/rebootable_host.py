# SPDX-License-Identifier: Apache-2.0
"""Host that can be rebooted, and a driver that forgets handles at a reboot."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.doubles.drivers import PreparingDriver, discovery_result

_BOOT_ID: Final = 'proc/sys/kernel/random/boot_id'


def boot(root: Path, boot_id: str) -> None:
    """Write a new boot id below the root directory."""
    file = root / _BOOT_ID
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{boot_id}\n')


class ForgetfulDriver(PreparingDriver):
    """Driver of a vendor that is slow after a reboot and has lost all preparations."""

    def __init__(self, host: Host, *addresses: str) -> None:
        super().__init__(host, {})
        self.results = [discovery_result(address) for address in addresses]
        self.slow = 0  # attempts until the vendor's daemons run
        self.late = 0  # scans until the cards are on the bus
        self.attempts: list[str] = []  # uuids, in order
        self._guard = threading.Lock()
        self._host = host
        self._boot_id = host.boot_id

    def discover(self) -> Iterator[DiscoveryResult]:
        if self.late:
            self.late -= 1
            self.scan_count += 1
            return iter(())
        return super().discover()

    def prepare(self, handle: AllocatedHandle) -> None:
        # Cards are rebuilt in parallel.
        with self._guard:
            self.attempts.append(handle.uuid)
            if self._host.boot_id != self._boot_id:
                self._boot_id = self._host.boot_id
                self.prepared.clear()
            if self.slow:
                self.slow -= 1
                raise DriverError(reason='The vendor driver is not up yet.')
            super().prepare(handle)
