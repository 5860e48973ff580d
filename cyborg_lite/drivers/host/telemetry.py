# SPDX-License-Identifier: Apache-2.0
"""Telemetry that sysfs provides for every PCI function, read within microseconds."""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health

# Severities of PCIe AER (kernel: ABI/testing/sysfs-bus-pci-devices-aer_stats).
_SEVERITIES: Final = ('correctable', 'nonfatal', 'fatal')
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
