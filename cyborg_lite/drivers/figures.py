# SPDX-License-Identifier: Apache-2.0
"""How a PCI function is doing, by what sysfs says of any: microseconds, no writes."""

import re
from dataclasses import replace
from typing import Final

from cyborg_lite.drivers.sysfs import PciFunction
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage

_ERRORS: Final = ('correctable', 'nonfatal', 'fatal')
_TOTAL: Final = re.compile(r'TOTAL_ERR_\w+ (\d+)')
_MILLI: Final = 1e3  # hwmon: millidegrees
_MICRO: Final = 1e6  # hwmon: microwatts


def of_function(function: PciFunction) -> Usage:
    """Whether it is there and well, its errors, and what its sensors read."""
    if not function.present:
        return Usage(Health.GONE, 'it is not on the bus any more')
    if function.lost:
        return Usage(Health.FAILED, 'lost: its config space reads all ones')
    if function.suspended:
        return Usage()  # to read more of it would wake it up
    counters = _counters(function)
    health, reason = _health(function, counters)
    return replace(_sensors(function), health=health, reason=reason, counters=counters)


def _health(function: PciFunction, counters: dict[str, int]) -> tuple[Health, str]:
    if counters.get('fatal'):
        return Health.FAILED, f'{counters["fatal"]} fatal PCI errors'
    if function.guest_driver:
        return Health.OK, ''  # an idle link is slow, and the guest rules over it
    width = function.number('current_link_width')
    most = function.number('max_link_width')
    if width and most and width < most:
        return Health.DEGRADED, f'link of {width} lanes instead of {most}'
    return Health.OK, ''


def _counters(function: PciFunction) -> dict[str, int]:
    found = {}
    for kind in _ERRORS:
        total = _TOTAL.search(function.text(f'aer_dev_{kind}') or '')
        if total:
            found[kind] = int(total[1])
    return found


def _sensors(function: PciFunction) -> Usage:
    for monitor in function.names('hwmon'):
        where = f'hwmon/{monitor}'
        temperature = function.number(f'{where}/temp1_input')
        power = function.number(f'{where}/power1_average')
        if power is None:
            power = function.number(f'{where}/power1_input')
        return Usage(
            temperature=None if temperature is None else temperature / _MILLI,
            power=None if power is None else power / _MICRO,
        )
    return Usage()
