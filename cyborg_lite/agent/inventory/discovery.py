# SPDX-License-Identifier: Apache-2.0
"""Runs the drivers independently of each other and combines their results.

If a driver fails or hangs, its last results are reused and marked as degraded until it
answers again. A device is removed only after several successful scans without it,
because the conductor treats a device that is missing in a report as removed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from cyborg_lite.agent.inventory.driver_answer import list_claims
from cyborg_lite.agent.inventory.driver_watch import DriverWatch
from cyborg_lite.drivers.base import Driver, TracksHandles
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.host.timed_scan import Patience
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, HostReport

DRIVER_FAILED: Final = 'The driver failed; see the log of the agent.'


class Discovery:
    """Scans one host with all enabled drivers."""

    def __init__(
        self,
        host: Host,
        drivers: Mapping[str, Driver],
        driver_timeout: float,
        amend: Callable[[DiscoveryResult], DiscoveryResult] = lambda result: result,
        removal_scans: int = 3,  # successful scans without a device until it is removed
    ) -> None:
        self.host = host
        self._amend = amend  # adds facts to a result that the driver cannot detect
        self._drivers = drivers
        self._watches = [
            DriverWatch(name, driver, removal_scans, host.name)
            for name, driver in drivers.items()
        ]
        self._driver_timeout = driver_timeout  # seconds, for all drivers together
        self.results: tuple[DiscoveryResult, ...] = ()  # of the last scan, by address

    def restore_results(self, results: Iterable[DiscoveryResult]) -> None:
        """Restore the results of an earlier process. Call it before the first scan."""
        for result in results:
            for watch in self._watches:
                if watch.name == result.driver:
                    watch.restore_result(result)

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        """Pass handles that an earlier agent process prepared to the drivers.

        Call it before the first scan, and with handles whose card was moved.
        """
        prepared = list(handles)
        for driver in self._drivers.values():
            if isinstance(driver, TracksHandles):
                driver.restore_handles(prepared)

    def scan(self) -> tuple[DiscoveryResult, ...]:
        """Scan the host and return the results by address. Not thread-safe."""
        # A driver that starts to claim the same object later does not displace it.
        owners = {
            claim: result.driver
            for result in self.results
            if result.device is not None
            for claim in list_claims(result.device)
        }
        for watch in self._watches:
            watch.begin({claim for claim, name in owners.items() if name != watch.name})
        patience = Patience(self._driver_timeout)
        for watch in self._watches:
            watch.finish(patience)
        return self._combine_results()

    def update_device(self, device: Device) -> None:
        """Replace a device that the agent itself has changed.

        Without it, the old device would be reported until the next scan.
        """
        for watch in self._watches:
            watch.update_device(device)
        self._combine_results()

    def _combine_results(self) -> tuple[DiscoveryResult, ...]:
        results = [result for watch in self._watches for result in watch.list_results()]
        self.results = tuple(map(self._amend, resolve_conflicts(results)))
        return self.results

    def report(self) -> HostReport:
        """Return the report to the conductor about the last scan."""
        devices = tuple(result.device for result in self.results if result.device)
        return HostReport(self.host.name, self.host.boot_id, devices)

    @property
    def unavailable_drivers(self) -> Mapping[str, str]:
        """Error texts of the drivers that did not complete the last scan, by name."""
        return {watch.name: watch.error for watch in self._watches if watch.error}

    @property
    def has_missing_devices(self) -> bool:
        """Existence of a missing device that does not count as removed yet."""
        return any(watch.misses for watch in self._watches)

    def list_reported_results(self) -> tuple[DiscoveryResult, ...]:
        """Return the last result of each device, for a later process to restore."""
        results = (result for watch in self._watches for result in watch.devices)
        return tuple(sorted(results, key=lambda result: result.address))

    def list_conflicts(self) -> tuple[str, ...]:
        """Return the functions that several drivers report, with the driver names."""
        reported = [
            result
            for watch in self._watches
            for result in watch.results
            if result.device
        ]
        claimants = _drivers_by_claim(reported)
        lines = []
        for result in reported:
            conflict = _describe_conflict(result, claimants)
            if conflict:
                lines.append(f'{result.address} is {conflict}')
        return tuple(dict.fromkeys(lines))

    def find_driver(self, address: str) -> Driver | None:
        """Return the driver of a function, or None if no driver reports it."""
        for result in self.results:
            if result.address == address:
                return self._drivers.get(result.driver)
        return None


def resolve_conflicts(
    results: Iterable[DiscoveryResult],
) -> tuple[DiscoveryResult, ...]:
    """Return one result per function, by address, unless drivers are in conflict.

    If one driver reports a device, results of other drivers for the function are
    ignored. If several drivers report a device, none of them is offered, because it
    would be allocated twice.
    """
    by_address = sorted(results, key=lambda result: result.address)
    claimants = _drivers_by_claim(by_address)
    resolved: list[DiscoveryResult] = []
    for _, group in groupby(by_address, key=lambda result: result.address):
        function_results = list(group)
        reported = [result for result in function_results if result.device]
        for result in reported or function_results[:1]:
            conflict = _describe_conflict(result, claimants) if result.device else ''
            if conflict:
                result = replace(result, reason=conflict, device=None)
            resolved.append(result)
    return tuple(resolved)


def _drivers_by_claim(
    results: Iterable[DiscoveryResult],
) -> Mapping[str, Sequence[str]]:
    """Return the names of the drivers that report each claimed object."""
    drivers: dict[str, list[str]] = {}
    for result in results:
        for claim in list_claims(result.device) if result.device else ():
            drivers.setdefault(claim, []).append(result.driver)
    return drivers


def _describe_conflict(
    result: DiscoveryResult, claimants: Mapping[str, Sequence[str]]
) -> str:
    """Return the reason not to offer the device, or '' if only one driver claims it."""
    claims = list_claims(result.device) if result.device else ()
    names = sorted({name for claim in claims for name in claimants[claim]})
    if len(names) < 2:
        return ''
    return f'claimed by {" and ".join(names)}: enable only one of them'
