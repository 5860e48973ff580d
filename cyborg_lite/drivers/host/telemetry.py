# SPDX-License-Identifier: Apache-2.0
"""Telemetry that sysfs provides for every PCI function, read within microseconds."""

import re
from dataclasses import replace
from typing import Final

from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage

# Severities of PCIe AER (kernel: ABI/testing/sysfs-bus-pci-devices-aer_stats).
_SEVERITIES: Final = ('correctable', 'nonfatal', 'fatal')
_TOTAL: Final = re.compile(r'TOTAL_ERR_\w+ (\d{1,18})\b')
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
    counters = _read_counters(function)
    return replace(usage, health=health, reason=reason, counters=counters)


def _assess_link(function: PciFunction) -> tuple[Health, str]:
    if function.has_guest_driver:
        return Health.OK, ''  # the guest controls the link, which is slow when idle
    width = function.number('current_link_width')
    maximum = function.number('max_link_width')
    if width and maximum and width < maximum:
        return Health.DEGRADED, f'link of {width} lanes instead of {maximum}'
    return Health.OK, ''


def _read_counters(function: PciFunction) -> dict[str, int]:
    counters = {}
    for severity in _SEVERITIES:
        total = _TOTAL.search(function.text(f'aer_dev_{severity}') or '')
        if total:
            counters[severity] = int(total[1])
    return counters


def _read_sensors(function: PciFunction) -> Usage:
    for monitor in function.names('hwmon'):
        directory = f'hwmon/{monitor}'
        temperature = function.number(f'{directory}/temp1_input')
        power = function.number(f'{directory}/power1_average')
        if power is None:
            power = function.number(f'{directory}/power1_input')
        return Usage(
            temperature=None if temperature is None else temperature / _MILLI,
            power=None if power is None else power / _MICRO,
        )
    return Usage()
