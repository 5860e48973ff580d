# SPDX-License-Identifier: Apache-2.0
"""Runs one driver in a thread and stores its last results and its error."""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from oslo_log import log

from cyborg_lite.agent.inventory.driver_answer import (
    DriverAnswer,
    DriverScope,
    validate_results,
)
from cyborg_lite.drivers.base import Driver, RestoresDevices
from cyborg_lite.drivers.host.timed_scan import Patience
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, Health
from cyborg_lite.model.inventory.identities import map_serials

LOG = log.getLogger(__name__)

_NOT_SCANNED: Final = 'it has not completed a scan yet'
_TIMED_OUT: Final = 'it exceeded driver_timeout'


class DriverWatch:
    """The scan thread and the last results of a driver."""

    def __init__(
        self, name: str, driver: Driver, removal_scans: int, hostname: str
    ) -> None:
        self.name = name
        self.results: tuple[DiscoveryResult, ...] = ()
        self.error = _NOT_SCANNED  # empty after a successful scan
        self.misses: Mapping[str, _Miss] = {}  # by address
        self._driver = driver
        self._removal_scans = removal_scans
        self._scope = DriverScope(hostname, name)
        self._faults: tuple[str, ...] = ()  # of the last scan
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        # by address: devices that the agent changed since the last scan began
        self._updated_devices: dict[str, Device] = {}

    def restore_result(self, result: DiscoveryResult) -> None:
        """Restore a result of an earlier process. Call it before the first scan."""
        self.results = (*self.results, result)
        if isinstance(self._driver, RestoresDevices) and result.device is not None:
            self._driver.restore_device(result.device)

    def update_device(self, device: Device) -> None:
        """Replace a device that the agent changed. It overrides a running scan."""
        with self._guard:
            self._updated_devices[device.control_address] = device
            self.results = self._apply_updates(self.results)

    def _apply_updates(
        self, results: Iterable[DiscoveryResult]
    ) -> tuple[DiscoveryResult, ...]:
        updates = self._updated_devices
        return tuple(
            replace(result, device=updates.get(result.address, result.device))
            if result.device
            else result
            for result in results
        )

    def begin(self, other_claims: Collection[str] = ()) -> None:
        """Start a scan, unless the previous one is still running.

        :param other_claims: objects that devices of other drivers claim
        """
        if self._thread is None or not self._thread.is_alive():
            self._scope = replace(self._scope, other_claims=other_claims)
            # A daemon thread, because a read from a failing device may never return.
            self._thread = threading.Thread(
                target=self._scan, name=f'discover-{self.name}', daemon=True
            )
            self._thread.start()

    def finish(self, patience: Patience) -> None:
        """Wait for the end of the scan, unless it has timed out before."""
        thread = self._thread
        if thread is None or self.error == _TIMED_OUT:
            return

        def has_ended(seconds: float) -> bool:
            thread.join(seconds)
            return not thread.is_alive()

        if not patience.wait(has_ended):
            self.error = _TIMED_OUT
            LOG.error(
                'Driver %s exceeded driver_timeout; its last result is reused',
                self.name,
            )

    @property
    def devices(self) -> tuple[DiscoveryResult, ...]:
        """Last result of each device that does not count as removed."""
        results = (result for result in self.results if result.device)
        return (*results, *(miss.last for miss in self.misses.values()))

    def list_results(self) -> tuple[DiscoveryResult, ...]:
        """Return the last results, including devices that are temporarily missing."""
        misses = self.misses
        present = [result for result in self.results if result.address not in misses]
        results = (*present, *(miss.to_result() for miss in misses.values()))
        if not self.error:
            return results
        reason = f'Driver {self.name} does not answer; its last result is reused.'
        return tuple(_mark_degraded(result, reason) for result in results)

    def _scan(self) -> None:
        with self._guard:
            self._updated_devices.clear()
        try:
            answer = validate_results(self._driver.discover(), self._scope)
        except (Exception, SystemExit) as error:
            # A faulty driver must not prevent the report of the other drivers.
            # SystemExit would end this thread without a message.
            message = f'{type(error).__name__}: {error}'
            if message != self.error:
                LOG.exception(
                    'Scan by driver %s failed; its last result is reused', self.name
                )
            self.error = message
            return
        if self.error not in ('', _NOT_SCANNED):
            LOG.info('Scans by driver %s succeed again', self.name)
        for fault in answer.faults:
            if fault not in self._faults:
                LOG.error('Driver %s: %s', self.name, fault)
        self._faults = answer.faults
        with self._guard:
            results = self._apply_updates(self._keep_last(answer))
            misses = self._list_misses(results)
            self.misses, self.results, self.error = misses, results, ''

    def _keep_last(self, answer: DriverAnswer) -> tuple[DiscoveryResult, ...]:
        """Return the results, with the last valid device of each invalid one."""
        last = {result.address: result for result in self.results if result.device}
        return tuple(
            _mark_degraded(last[result.address], result.reason)
            if result.address in answer.withheld & last.keys()
            else result
            for result in answer.results
        )

    def _list_misses(self, results: Sequence[DiscoveryResult]) -> dict[str, '_Miss']:
        """Return the devices of earlier scans that the results lack, by address."""
        by_address = {result.address: result for result in results}
        moved = _list_moved(self.devices, results)
        misses = {}
        for last in self.devices:
            if last.address in moved:
                # Two devices with one serial number could not be told apart.
                LOG.warning('Device %s was moved to another slot', last.address)
                continue
            result = by_address.get(last.address)
            if result is not None and result.device is not None:
                continue
            previous = self.misses.get(last.address)
            scans = previous.scans + 1 if previous else 1
            if scans < self._removal_scans:
                misses[last.address] = _Miss(last, scans, result)
            else:
                LOG.warning(
                    'Device %s is removed: %d scans did not detect it',
                    last.address,
                    scans,
                )
        return misses


@dataclass(frozen=True, slots=True)
class _Miss:
    """A device that the last scans did not detect."""

    last: DiscoveryResult
    scans: int
    current: DiscoveryResult | None  # None: the function itself is missing

    def to_result(self) -> DiscoveryResult:
        """Return the device as gone: not allocatable, but existing ARQs keep it."""
        device = self.last.device
        if device is None:
            return self.last
        reason = self.current.reason if self.current else 'it was not detected any more'
        missing = replace(device, health=Health.GONE, health_reason=reason)
        return replace(self.last, reason=reason, device=missing)


def _list_moved(
    before: Sequence[DiscoveryResult], after: Sequence[DiscoveryResult]
) -> frozenset[str]:
    """Return the addresses that cards with a serial number have left for others."""
    old, new = (
        map_serials([result.device for result in results if result.device])
        for results in (before, after)
    )
    return frozenset(
        device.control_address
        for serial, device in old.items()
        if serial in new and new[serial].control_address != device.control_address
    ) - {device.control_address for device in new.values()}


def _mark_degraded(result: DiscoveryResult, reason: str) -> DiscoveryResult:
    device = result.device
    if device is None or device.health is not Health.OK:
        return result
    degraded = replace(device, health=Health.DEGRADED, health_reason=reason)
    return replace(result, device=degraded)
