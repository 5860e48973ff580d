# SPDX-License-Identifier: Apache-2.0
"""Changes the modes of devices and restores them after a reboot of the host.

``modes.json`` contains the mode of each device that an operator has changed, and the
mode that is being set. A change that fails part-way is rolled back, also by the next
process if this one crashes. The mode of a device is restored before its handles.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from oslo_log import log

from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.devices.device_threads import UNFINISHED, DeviceThreads
from cyborg_lite.agent.inventory.discovery import DRIVER_FAILED, Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.drivers.base import Driver, KeepsModes, PreparesDevices, SetsModes
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.devices import ModeUnknown
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError
from cyborg_lite.model.devices.modes import DeviceModes, ModeOrder, list_inventory
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, Health
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.rpc.dispatcher import serves_host
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)

LONGEST_RESTORE: Final = 60.0
"""Seconds that the start of the agent waits for the drivers."""

LONGEST_LATER_RESTORE: Final = 5.0
"""Seconds that a scan waits for the drivers."""


@dataclass(frozen=True, slots=True)
class StoredMode:
    """The mode of a device that the agent restores."""

    address: str
    hardware_id: str
    mode: str  # empty: the mode before the first change has no name
    pending: str = ''  # the mode that is being set; empty: none


class ModeStore:
    """The stored modes, in memory and in ``modes.json``. Safe to use from any thread.

    If the file cannot be written, an error is logged.
    """

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        path = directory / 'modes.json'
        # read_only: another process owns the file.
        self._file = StateFile(path, list[StoredMode], read_only=read_only)
        self._guard = threading.Lock()
        # By hardware id. None: not read yet.
        self._entries: dict[str, StoredMode] | None = None

    def find(self, device: Device) -> StoredMode | None:
        """Return the stored mode of a device, or None.

        A card whose serial number cannot be read yet is known by its address.
        """
        with self._guard:
            entries = self._read()
            at_slot = entries.get(device.control_address)
            entry = entries.get(device.hardware_id, at_slot)
            if entry is not None or device.hardware_id != device.control_address:
                return entry
            at_address = (
                entry
                for entry in entries.values()
                if entry.address == device.control_address
            )
            return next(at_address, None)

    def save(self, device: Device, mode: str, pending: str = '') -> None:
        entry = StoredMode(device.control_address, device.hardware_id, mode, pending)
        with self._guard:
            # The serial number may have become readable since the last change.
            self._read().pop(device.control_address, None)
            self._read()[device.hardware_id] = entry
            self._write()

    def restore(self, device: Device, entry: StoredMode | None) -> None:
        """Store an earlier entry of a device again; None: delete the entry."""
        with self._guard:
            if entry is None:
                self._read().pop(device.hardware_id, None)
            else:
                self._read()[device.hardware_id] = replace(entry, pending='')
            self._write()

    def _read(self) -> dict[str, StoredMode]:
        if self._entries is None:
            entries = self._file.read() or ()
            self._entries = {entry.hardware_id: entry for entry in entries}
        return self._entries

    def _write(self) -> None:
        self._file.write(list(self._read().values()))


class Modes:
    """Changes and restores modes, one change at a time per device."""

    def __init__(
        self,
        discovery: Discovery,
        cache: Cache,
        store: ModeStore,
        locks: DeviceLocks,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._discovery = discovery
        self._cache = cache
        self._store = store
        self._locks = locks  # shared with all components that change devices
        self._on_change = on_change  # called after each change of a device
        self._failures: dict[str, str] = {}  # of restores, by device address
        # Their results tell whether the device has changed.
        self._threads = DeviceThreads[bool]('modes')

    @serves_host(Agents.list_modes)
    def list_modes(self) -> tuple[DeviceModes, ...]:
        """Return the modes of all devices that have any, by address."""
        listings = []
        for device, driver in self._list_devices():
            modes = tuple(driver.modes(device)) if isinstance(driver, SetsModes) else ()
            if modes and isinstance(driver, SetsModes):
                stored = self._store.find(device)
                listing = DeviceModes(
                    device.control_address,
                    list_inventory(device.root),
                    modes,
                    declared=driver.declared_mode(device),
                    stored=stored.mode or None if stored else None,
                )
                listings.append(listing)
        return tuple(listings)

    @serves_host(Agents.set_mode)
    def set_mode(self, order: ModeOrder) -> Device:
        """Set the mode of an unused device and return the changed device."""
        with self._locks.lock(order.address):
            reason = f'The mode of {order.address} was already changed by a later call.'
            self._locks.check_latest(order, reason)
            self._check_unused(order.address)
            device, driver = self._find(order.address)
            stored = self._store.find(device)
            current = [mode.name for mode in driver.modes(device) if mode.is_current]
            former = stored.mode if stored else ''
            if former in ('', order.mode) and order.mode in current:
                self._store.save(device, order.mode)
                return device
            has_former = bool(former) and driver.has_mode(device, former)
            previous = former if has_former else next(iter(current), former)
            self._store.save(device, previous, pending=order.mode)
            try:
                device = self._apply(driver, device, order.mode)
            except DriverError as error:
                self._roll_back(driver, device, previous, error)
                self._store.restore(device, stored)
                raise
            self._store.save(device, order.mode)
        self._failures.pop(order.address, None)
        self._on_change()
        LOG.info('Mode of device %s changed to %s', order.address, order.mode)
        return device

    def restore(self, address: str) -> bool:
        """Set the stored mode of a device, unless the device has it or keeps modes.

        :returns: True if the device has changed
        :raises DriverError: the mode cannot be set now
        """
        with self._locks.lock(address):
            try:
                device, driver = self._find(address)
            except DriverError:
                return False  # the handles of a missing device report the reason
            if isinstance(driver, KeepsModes):
                return False
            stored = self._store.find(device)
            if stored is None or not stored.mode:
                return False
            if driver.has_mode(device, stored.mode):
                return False
            self._apply(driver, device, stored.mode)
            self._store.save(device, stored.mode)
        LOG.warning('Mode %s of device %s is restored', stored.mode, address)
        return True

    def restore_all(self, longest: float = LONGEST_RESTORE) -> bool:
        """Restore the modes of all devices, then prepare the devices.

        A failure is logged when it begins and when it ends, and shown as the health of
        the device. The next call tries again. A driver that has not returned costs its
        device only.

        :param longest: seconds to wait for the drivers
        :returns: True if a device has changed
        """
        calls = {
            device.control_address: partial(self._try_set_up, device, driver)
            for device, driver in self._list_devices()
            if isinstance(driver, SetsModes | PreparesDevices)
            and not self._threads.is_running(device.control_address)
        }
        results = self._threads.run(calls, longest)
        for address in calls.keys() - results.keys():
            self._record(address, UNFINISHED)
        return any(results.values())

    def _try_set_up(self, device: Device, driver: Driver) -> bool:
        """Set up a device and record a failure; return True if it has changed."""
        address, reason, has_changed = device.control_address, '', False
        try:
            has_changed = self._set_up(device, driver)
        except ServiceUnavailable:
            # The result of the last restore stays.
            LOG.debug('Another call changes device %s: it is set up later', address)
            return False
        except CyborgError as error:
            reason = error.text
        except Exception:
            # A bug in one driver must not affect the devices of other drivers.
            LOG.exception('Preparing device %s failed', address)
            reason = DRIVER_FAILED
        self._record(address, reason)
        return has_changed

    def _record(self, address: str, reason: str) -> None:
        """Log and keep a failed restore; an empty reason ends it."""
        if reason and reason != self._failures.get(address):
            LOG.error('Mode or functions of %s not restored: %s', address, reason)
        elif not reason and address in self._failures:
            LOG.info('Restored the mode and functions of device %s', address)
        if reason:
            self._failures[address] = reason
        elif self._failures.pop(address, None) == UNFINISHED:
            self._on_change()

    def amend(self, result: DiscoveryResult) -> DiscoveryResult:
        """Add a failed restore to the health of a device.

        A device whose driver has not returned cannot be used.
        """
        device, reason = result.device, self._failures.get(result.address)
        if reason is None or device is None or device.health is not Health.OK:
            return result
        health = Health.FAILED if reason == UNFINISHED else Health.DEGRADED
        reason = f'Its mode or functions are not restored: {reason}'[:REASON_MAX_LENGTH]
        amended = replace(device, health=health, health_reason=reason)
        return replace(result, device=amended)

    def _set_up(self, device: Device, driver: Driver) -> bool:
        """Restore the mode of a device and prepare it; return True for a change.

        :raises ServiceUnavailable: another call changes the device, perhaps for hours;
            a wait would delay other devices and the next scan
        :raises CyborgError: it is not possible now
        """
        self._locks.check_unlocked(device.control_address)
        has_changed = False
        if isinstance(driver, SetsModes):
            has_changed = self.restore(device.control_address)
        if isinstance(driver, PreparesDevices):
            with self._locks.lock(device.control_address):
                has_changed |= driver.prepare_device(device)
        if has_changed:
            self._on_change()
        return has_changed

    def _apply(self, driver: SetsModes, device: Device, mode: str) -> Device:
        changed = driver.set_mode(device, mode)
        self._discovery.update_device(changed)
        if not driver.has_mode(changed, mode):
            reason = f'Device {device.control_address} does not show mode {mode}.'
            raise DriverError(reason=reason)
        return changed

    def _roll_back(
        self, driver: SetsModes, device: Device, previous: str, error: DriverError
    ) -> None:
        """Set the previous mode after a failed change.

        :raises ModeUnknown: the previous mode cannot be set
        """
        address = device.control_address
        if previous and driver.has_mode(device, previous):
            return
        try:
            if not previous:
                raise DriverError(reason='The mode before has no name.')
            self._apply(driver, device, previous)
        except DriverError as failure:
            LOG.error('Rollback of device %s failed: %s', address, failure.text)
            reason = f'{error.text} The rollback failed: {failure.text}'
            raise ModeUnknown(address=address, reason=reason) from None
        LOG.warning('Restored mode %s of device %s: %s', previous, address, error.text)

    def _check_unused(self, address: str) -> None:
        """Check that no instance has a prepared handle of a device.

        :raises DeviceBusy: an instance has
        """
        for entry in self._cache.handles.values():
            if entry.handle.control_address == address:
                reason = f'ARQ {entry.handle.arq_uuid} has handle {entry.handle.key}'
                raise DeviceBusy(address=address, reason=reason)

    def _find(self, address: str) -> tuple[Device, SetsModes]:
        for device, driver in self._list_devices():
            if device.control_address == address:
                if isinstance(driver, SetsModes):
                    return device, driver
                reason = f'Driver {driver.NAME} has no modes for {address}.'
                raise DriverError(reason=reason)
        raise DeviceGone(address=address)

    def _list_devices(self) -> list[tuple[Device, Driver]]:
        drivers = self._discovery.find_driver
        return [
            (result.device, driver)
            for result in self._discovery.results
            if result.device is not None
            and (driver := drivers(result.address)) is not None
        ]
