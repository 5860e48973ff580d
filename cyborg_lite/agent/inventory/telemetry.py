# SPDX-License-Identifier: Apache-2.0
"""Reads device telemetry from the drivers, in one background thread per driver."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from oslo_log import log

from cyborg_lite import codec
from cyborg_lite.drivers.base import Driver, ReadsUsage
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, Health
from cyborg_lite.model.limits import check_values

LOG = log.getLogger(__name__)

_MIB: Final = 1 << 20
_STEP: Final = 5  # percent, degrees Celsius or watts
_MEMORY_STEP: Final = 64 * _MIB  # bytes


class TelemetryCollector:
    """The last telemetry of each device. No method waits for a driver."""

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        count: Callable[[str, Usage], Usage] = lambda _, usage: usage,
    ) -> None:
        self._drivers = drivers
        # Counts the signals in the telemetry of a device, by its address.
        self._count = count
        # Called when telemetry changes the health of a device.
        self.on_health_change: Callable[[], None] = lambda: None
        self._threads: dict[str, threading.Thread] = {}
        self._usages: dict[str, Mapping[str, Usage]] = {}  # by driver and address

    @property
    def usages(self) -> dict[str, Usage]:
        """Last values of all devices, rounded, by address."""
        merged: dict[str, Usage] = {}
        for usages in list(self._usages.values()):
            merged |= usages
        return merged

    def start_reading(self, results: Sequence[DiscoveryResult]) -> None:
        """Start to read the telemetry of all devices.

        Drivers whose previous read has not returned are skipped.
        """
        for name, driver in self._drivers.items():
            if not isinstance(driver, ReadsUsage):
                continue
            previous = self._threads.get(name)
            if previous is not None and previous.is_alive():
                continue
            devices = [result.device for result in results if result.driver == name]
            # A daemon thread, because a read from a failing device may never return.
            self._threads[name] = threading.Thread(
                target=self._read_devices,
                args=(name, driver, [device for device in devices if device]),
                name=f'telemetry-{name}',
                daemon=True,
            )
            self._threads[name].start()

    def wait(self) -> None:
        """Wait until all reads have returned."""
        for thread in list(self._threads.values()):
            thread.join()

    def amend(self, result: DiscoveryResult) -> DiscoveryResult:
        """Add a health problem that only the telemetry shows to a discovery result."""
        device = result.device
        usage = self._usages.get(result.driver, {}).get(result.address)
        if device is None or usage is None or device.health is not Health.OK:
            return result
        if usage.health is Health.OK:
            return result
        unhealthy = replace(device, health=usage.health, health_reason=usage.reason)
        return replace(result, device=unhealthy)

    def _read_devices(
        self, name: str, driver: ReadsUsage, devices: Sequence[Device]
    ) -> None:
        usages = {}
        for device in devices:
            try:
                usage = _validate_usage(driver.read_usage(device))
                address = device.control_address
                usages[address] = self._count(address, usage)
            except CyborgError as error:
                LOG.debug(
                    'No telemetry of device %s: %s', device.control_address, error.text
                )
            except Exception:
                # Telemetry is optional: its failure must not affect anything else.
                LOG.exception(
                    'Reading telemetry of device %s failed', device.control_address
                )
        before = self._usages.get(name, {})
        self._usages[name] = usages
        if _health_problems(before) != _health_problems(usages):
            self.on_health_change()


def _health_problems(usages: Mapping[str, Usage]) -> Mapping[str, tuple[Health, str]]:
    return {
        address: (usage.health, usage.reason)
        for address, usage in usages.items()
        if usage.health is not Health.OK
    }


def _validate_usage(usage: Usage) -> Usage:
    """Return the rounded usage, if the conductor would accept it.

    The conductor rejects a whole heartbeat because of one invalid value.

    :raises Exception: a value is invalid
    """
    checked = round_usage(codec.load(Usage, codec.dump(usage)))
    check_values(checked)
    return checked


def round_usage(usage: Usage) -> Usage:
    """Round values, because each changed value costs a write to the database."""
    memory = usage.memory_used
    return replace(
        usage,
        busy_percent=_round_to_step(usage.busy_percent),
        temperature=_round_to_step(usage.temperature),
        power=_round_to_step(usage.power),
        memory_used=memory and memory // _MEMORY_STEP * _MEMORY_STEP,
    )


def _round_to_step(value: float | None) -> float | None:
    return None if value is None else float(round(value / _STEP) * _STEP)
