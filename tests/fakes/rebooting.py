# SPDX-License-Identifier: Apache-2.0
"""A host that can be booted, and a driver whose preparations do not outlive that."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Finding
from tests.fakes.drivers import PreparingDriver, finding

_BOOT_ID: Final = 'proc/sys/kernel/random/boot_id'


def boot(root: Path, boot_id: str) -> None:
    """The host below that directory was booted; its identity is the boot's."""
    file = root / _BOOT_ID
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{boot_id}\n')


class ForgetfulDriver(PreparingDriver):
    """Of a vendor that takes its time after a boot, and has lost everything by it."""

    def __init__(self, host: Host, *addresses: str) -> None:
        super().__init__(host, {})
        self.findings = [finding(address) for address in addresses]
        self.slow = 0  # attempts until the vendor's daemons are up
        self.late = 0  # looks until its cards are on the bus
        self.attempts: list[str] = []  # uuids, in order
        self._guard = threading.Lock()
        self._host = host
        self._boot_id = host.boot_id

    def discover(self) -> Iterator[Finding]:
        if self.late:
            self.late -= 1
            self.looks += 1
            return iter(())
        return super().discover()

    def prepare(self, handle: HeldHandle) -> None:
        # Cards are rebuilt side by side.
        with self._guard:
            self.attempts.append(handle.uuid)
            if self._host.boot_id != self._boot_id:
                self._boot_id = self._host.boot_id
                self.prepared.clear()
            if self.slow:
                self.slow -= 1
                raise DriverError(reason='The vendor driver is not up yet.')
            super().prepare(handle)
