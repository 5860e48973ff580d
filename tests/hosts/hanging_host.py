# SPDX-License-Identifier: Apache-2.0
"""A host with a card that hangs."""

import threading
from typing import ClassVar

from cyborg_lite.drivers.host.sysfs import Host


class HangingHost(Host):
    """A host on which reads of some files never return."""

    blocked: ClassVar[set[str]] = set()

    def raw(self, path: str, size: int = 1 << 20) -> bytes | None:
        if path.removeprefix('sys/bus/pci/devices/') in self.blocked:
            threading.Event().wait()
        return super().raw(path, size)
