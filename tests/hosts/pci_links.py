# SPDX-License-Identifier: Apache-2.0
"""Directories of PCI functions on a fixture host, and links to their drivers."""

from pathlib import Path

from cyborg_lite.drivers.host.sysfs import Host


def find_directory(host: Host, address: str) -> Path:
    """Return the directory of a function."""
    return (host.root / 'sys/bus/pci/devices' / address).resolve()


def bind_driver(host: Host, address: str, driver: str | None) -> None:
    """Bind a function to a driver instead of its present one; None: to no driver."""
    link = find_directory(host, address) / 'driver'
    link.unlink(missing_ok=True)
    if driver is not None:
        target = host.root / 'sys/bus/pci/drivers' / driver
        target.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
