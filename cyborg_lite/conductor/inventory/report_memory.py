# SPDX-License-Identifier: Apache-2.0
"""Last reports of hosts, to which their agents send changes."""

import threading
from collections import OrderedDict
from typing import Final

from cyborg_lite import codec
from cyborg_lite.model.inventory.host_report import HostReport

_MAX_SIZE: Final = 16 * 2**20  # characters: about 10 000 hosts with 8 devices


class ReportMemory:
    """The last report of each host, compressed. Thread-safe.

    It may forget a report at any time: the agent then sends its whole report.
    """

    def __init__(self, max_size: int = _MAX_SIZE) -> None:
        # Characters; above it, the oldest reports are forgotten.
        self._max_size = max_size
        self._size = 0
        self._lock = threading.Lock()
        self._reports: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def remember(self, report: HostReport) -> None:
        """Replace the report of a host."""
        digest, text = report.digest, codec.pack(report)
        with self._lock:
            self._forget(report.hostname)
            self._reports[report.hostname] = digest, text
            self._size += len(text)
            while self._size > self._max_size:
                self._forget(next(iter(self._reports)))

    def find(self, host: str, digest: str) -> HostReport | None:
        """Return the report of a host with a digest; None: not remembered."""
        with self._lock:
            known_digest, text = self._reports.get(host, ('', ''))
        if known_digest != digest or not text:
            return None
        return codec.unpack(HostReport, text, codec.UNLIMITED)

    def _forget(self, host: str) -> None:
        _, text = self._reports.pop(host, ('', ''))
        self._size -= len(text)
