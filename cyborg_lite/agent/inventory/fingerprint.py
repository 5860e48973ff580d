# SPDX-License-Identifier: Apache-2.0
"""Computes a fingerprint of sysfs, which changes with the hardware of a host.

Only names and links are read. No file of a device is opened, so that no device is woken
from a power-saving state or blocks the agent.
"""

from typing import Final

from cyborg_lite.drivers.host.sysfs import Host

_FUNCTIONS: Final = 'sys/bus/pci/devices'
_DIRECTORIES: Final = (
    'sys/bus/mdev/devices',
    'sys/class/mdev_bus',
    'sys/class/fpga_manager',
    'sys/class/fpga_region',
)


def compute_fingerprint(host: Host) -> int:
    """Return a hash of the PCI functions, their kernel drivers and the class devices.

    The value is valid within one process only.
    """
    functions = tuple(
        (name, host.target(f'{_FUNCTIONS}/{name}/driver'))
        for name in host.names(_FUNCTIONS)
    )
    return hash((functions, *(host.names(path) for path in _DIRECTORIES)))
