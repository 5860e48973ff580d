# SPDX-License-Identifier: Apache-2.0
"""Telemetry: what sysfs has for every PCI function, and readings that take long."""

import fnmatch
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health

# Numbers of a device by name; a value that cannot be read is missing.
Readings = Mapping[str, float]

# Severities of PCIe AER (kernel: ABI/testing/sysfs-bus-pci-devices-aer_stats).
_SEVERITIES: Final = ('correctable', 'nonfatal', 'fatal')
SIGNALS: Final = (
    *_SEVERITIES,
    'aer_not_recovered',
    'inaccessible',
    'reset_failed',
)
"""The signals of any PCI function; the last three come from the kernel log."""
_TOTAL: Final = re.compile(r'TOTAL_ERR_\w+ (\d{1,18})\b')
# Places of the monitors: of most cards, of NVMe drives (kernel 5.12 and later), and of
# FPGA cards with dfl, which have one for the temperature and one for the power.
_MONITORS: Final = ('hwmon/*', 'nvme/nvme*/hwmon*', 'fpga_region/*/dfl-fme.*/hwmon/*')
# Units of hwmon (kernel: hwmon/sysfs-interface.rst).
_MILLI: Final = 1e3  # millidegrees Celsius
_MICRO: Final = 1e6  # microwatts


def read_usage(function: PciFunction) -> Usage:
    """Return health, error counters, temperature and power of a PCI function."""
    if not function.is_present:
        return Usage(Health.GONE, 'not present on the PCI bus')
    if function.is_lost:
        return Usage(Health.FAILED, 'lost: its config space reads all ones')
    if function.is_suspended:
        return Usage()  # further reads would wake the function up
    health, reason = _assess_link(function)
    usage = _read_sensors(function)
    # The agent assesses the counters, because only their growth shows a fault.
    counters = {
        severity: int(total[1])
        for severity in _SEVERITIES
        if (total := _TOTAL.search(function.text(f'aer_dev_{severity}') or ''))
    }
    return replace(usage, health=health, reason=reason, counters=counters)


def _assess_link(function: PciFunction) -> tuple[Health, str]:
    if function.has_guest_driver:
        return Health.OK, ''  # the guest controls the link, which is slow when idle
    width = function.number('current_link_width')
    maximum = function.number('max_link_width')
    if width and maximum and width < maximum:
        return Health.DEGRADED, f'link of {width} lanes instead of {maximum}'
    return Health.OK, ''


def _read_sensors(function: PciFunction) -> Usage:
    monitors = [path for item in _MONITORS for path in _list_paths(function, item)]
    temperature = _read_first(function, monitors, 'temp1_input')
    power = _read_first(function, monitors, 'power1_average', 'power1_input')
    return Usage(
        temperature=None if temperature is None else temperature / _MILLI,
        power=None if power is None else power / _MICRO,
    )


def _list_paths(
    function: PciFunction, pattern: str, directory: str = ''
) -> Iterator[str]:
    """Yield the paths below a function that match a pattern."""
    start, _, end = pattern.partition('/')
    for name in fnmatch.filter(function.names(directory), start):
        path = f'{directory}/{name}' if directory else name
        if end:
            yield from _list_paths(function, end, path)
        else:
            yield path


def _read_first(
    function: PciFunction, monitors: Sequence[str], *names: str
) -> int | None:
    """Return the first number in files of these names, or None without one."""
    paths = (f'{monitor}/{name}' for monitor in monitors for name in names)
    values = (function.number(path) for path in paths)
    return next((value for value in values if value is not None), None)


class CachedReadings:
    """Caches the last readings of each device. No read waits for another one."""

    def __init__(self, read: Callable[[str], Readings], interval: float) -> None:
        """Store the arguments.

        :param read: returns the readings of the device at an address; may block
        :param interval: seconds between two reads of a device
        """
        self._read = read
        self._interval = interval
        self._open = threading.Lock()  # locked during a read
        self._readings: dict[str, Readings] = {}  # by address
        self._due: dict[str, float] = {}  # monotonic time in seconds, by address

    def readings(self, address: str) -> Readings:
        """Return the cached readings of a device without blocking, or none."""
        if time.monotonic() >= self._due.get(address, 0.0):
            self._due[address] = time.monotonic() + self._interval
            threading.Thread(target=self.refresh, args=(address,), daemon=True).start()
        return self._readings.get(address, {})

    def refresh(self, address: str) -> None:
        """Read a device and cache the result; try again later if another read runs."""
        if not self._open.acquire(blocking=False):
            self._due.pop(address, None)
            return
        try:
            self._readings[address] = self._read(address)
        finally:
            self._open.release()
