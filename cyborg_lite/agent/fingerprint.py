# SPDX-License-Identifier: Apache-2.0
"""A cheap sign that the hardware of a host may have changed.

Only names and links of sysfs are read: no file of a device is opened, so that none is
woken or waited for.
"""

from typing import Final

from cyborg_lite.drivers.sysfs import Host

_FUNCTIONS: Final = 'sys/bus/pci/devices'
_LISTED: Final = (
    'sys/bus/mdev/devices',
    'sys/class/mdev_bus',
    'sys/class/fpga_manager',
    'sys/class/fpga_region',
)


def fingerprint(host: Host) -> int:
    """Another number where functions came or went, or were bound to another driver."""
    functions = tuple(
        (name, host.target(f'{_FUNCTIONS}/{name}/driver'))
        for name in host.names(_FUNCTIONS)
    )
    return hash((functions, *(host.names(where) for where in _LISTED)))
