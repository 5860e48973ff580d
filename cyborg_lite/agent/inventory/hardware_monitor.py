# SPDX-License-Identifier: Apache-2.0
"""Scans the hardware after each detected change, and periodically without a change."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.moved_devices import follow_devices
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal, NewEvent
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.hosts.events import HostEventKind
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult
from cyborg_lite.rpc.dispatcher import serves_host
from cyborg_lite.rpc.interface import Agents

_FUNCTIONS: Final = 'sys/bus/pci/devices'
_DIRECTORIES: Final = (
    'sys/bus/mdev/devices',
    'sys/class/mdev_bus',
    'sys/class/fpga_manager',
    'sys/class/fpga_region',
)


def compute_fingerprint(host: Host) -> int:
    """Return a hash of the PCI functions, their kernel drivers and the class devices.

    Only names and links are read. No file of a device is opened, so that no device is
    woken from a power-saving state or blocks the agent. The value is valid within one
    process only.
    """
    functions = tuple(
        (name, host.target(f'{_FUNCTIONS}/{name}/driver'))
        for name in host.names(_FUNCTIONS)
    )
    return hash((functions, *(host.names(path) for path in _DIRECTORIES)))


LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentIntervals:
    """Intervals and timeouts of the agent, in seconds, and the number of scans."""

    discovery_interval: float
    heartbeat_interval: float
    driver_timeout: float
    fingerprint_interval: float = 5.0
    recovery_patience: float = 180.0
    removal_scans: int = 3  # number of scans, not seconds


class HardwareMonitor:
    """Detects hardware changes, starts scans and records host events.

    It runs in a thread of its own, because a slow driver must not delay heartbeats.
    """

    def __init__(
        self,
        discovery: Discovery,
        cache: Cache,
        journal: Journal,
        intervals: AgentIntervals,
        stopping: threading.Event,
    ) -> None:
        self._discovery = discovery
        self._cache = cache
        self._journal = journal
        self._intervals = intervals
        self._stopping = stopping
        # Called after the host report has changed, and after each requested scan.
        self.on_change: Callable[[], None] = lambda: None
        # Called before each check, such as to read the kernel log.
        self.on_check: Callable[[], None] = lambda: None
        self._scan_requested = threading.Event()
        self._scanning = threading.RLock()
        self._fingerprint: int | None = None  # None: not computed yet
        self._scan_due = 0.0  # by the monotonic clock
        # None: the host was never scanned, so that nothing can have changed.
        self._devices: Mapping[str, Device] | None = None

    def restore_results(self) -> None:
        """Restore the saved results of an earlier process, before the first scan."""
        results = self._cache.results
        if results is not None:
            self._discovery.restore_results(results)
            self._devices = _devices_by_address(results)

    def run(self, on_scan: Callable[[], None] = lambda: None) -> None:
        """Check for changes until the stop event is set. The caller scans first.

        :param on_scan: called after each scan
        """
        while not self._stopping.wait(self._intervals.fingerprint_interval):
            try:
                before = self._devices
                if self.check():
                    self.on_change()
                if self._devices is not before:
                    on_scan()
            except Exception:
                # A bug in one check must not end the loop.
                LOG.exception('Check for hardware changes failed')

    def check(self) -> bool:
        """Scan if there is a reason to. Return True if the host report has changed."""
        self.on_check()
        current = compute_fingerprint(self._discovery.host)
        reasons = (
            current != self._fingerprint,
            self._scan_requested.is_set(),
            self._discovery.has_missing_devices,
            time.monotonic() >= self._scan_due,
        )
        if not any(reasons):
            return False
        self._scan_requested.clear()
        before = self._discovery.report().digest
        self.scan(current)
        return self._discovery.report().digest != before

    def request_scan(self) -> None:
        """Request a scan after a change that the fingerprint does not detect."""
        self._scan_requested.set()

    @serves_host(Agents.scan)
    def scan_now(self) -> str:
        """Scan the host, report it and return the digest of the host report."""
        self.scan()
        self.on_change()
        return self._discovery.report().digest

    def scan(self, fingerprint: int | None = None) -> None:
        """Scan the host, and record events for added, removed and changed devices.

        :param fingerprint: fingerprint before the scan; None: compute it
        """
        with self._scanning:
            if fingerprint is None:
                fingerprint = compute_fingerprint(self._discovery.host)
            self._fingerprint = fingerprint
            self._scan_due = time.monotonic() + self._intervals.discovery_interval
            devices = _devices_by_address(self._discovery.scan())
            if self._devices is not None:
                self._journal.append(_list_events(self._devices, devices))
            self._devices = devices
            moved = follow_devices(self._cache, tuple(devices.values()))
            if moved:
                self._discovery.restore_handles(moved)
            self._cache.save_results(self._discovery.list_reported_results())


def _devices_by_address(results: Iterable[DiscoveryResult]) -> Mapping[str, Device]:
    return {
        result.address: result.device for result in results if result.device is not None
    }


def _list_events(
    before: Mapping[str, Device], after: Mapping[str, Device]
) -> Iterator[NewEvent]:
    """Yield one event for each device that was added, removed or changed health."""
    for address in sorted({*before, *after}):
        old, new = before.get(address), after.get(address)
        if new is None:
            yield NewEvent(HostEventKind.LOSS, address)
        elif old is None:
            yield NewEvent(HostEventKind.HOTPLUG, address, reason=new.model)
        elif (old.health, old.health_reason) != (new.health, new.health_reason):
            reason = f'{new.health}: {new.health_reason}'.removesuffix(': ')
            yield NewEvent(HostEventKind.HEALTH, address, reason=reason)
