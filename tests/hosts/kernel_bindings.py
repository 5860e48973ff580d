# SPDX-License-Identifier: Apache-2.0
"""Drivers of PCI functions in the emulated kernel, as libvirt changes them.

A function that leaves its vendor's driver loses what that driver shows: its mdev types
and its directory in ``/proc/driver/nvidia``.
"""

import os
from pathlib import Path
from typing import Final

_DEVICES: Final = 'sys/bus/pci/devices'
_DRIVERS: Final = 'sys/bus/pci/drivers'
_GUEST_DRIVER: Final = 'vfio-pci'


class Bindings:
    """The functions that guests have, and their former drivers."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._former_drivers: dict[str, str] = {}  # by address
        self._hidden: dict[str, list[tuple[Path, Path]]] = {}  # places, old and new

    def attach(self, address: str, driver: str = _GUEST_DRIVER) -> None:
        """Bind a function to a driver, unless it has left its former one already."""
        if address in self._former_drivers:
            return
        link = self._root / _DEVICES / address / 'driver'
        self._former_drivers[address] = link.resolve().name if link.exists() else ''
        self._hide(address)
        self._set_driver(address, driver)

    def detach(self, address: str) -> None:
        """Return a function to its former driver."""
        if address not in self._former_drivers:
            return
        self._set_driver(address, self._former_drivers.pop(address))
        for old, new in self._hidden.pop(address):
            new.rename(old)

    def detach_all(self) -> None:
        """Return all functions, as a reboot does."""
        for address in list(self._former_drivers):
            self.detach(address)

    def _hide(self, address: str) -> None:
        store = self._root.parent / f'{self._root.name}.hidden' / address
        store.mkdir(parents=True, exist_ok=True)
        function = (self._root / _DEVICES / address).resolve()
        paths = (
            function / 'mdev_supported_types',
            self._root / 'sys/class/mdev_bus' / address,
            self._root / 'proc/driver/nvidia/gpus' / address,
        )
        self._hidden[address] = []
        for path in paths:
            if path.exists():
                place = store / path.parent.name
                self._hidden[address].append((path, place))
                path.rename(place)

    def _set_driver(self, address: str, driver: str) -> None:
        function = (self._root / _DEVICES / address).resolve()
        link = function / 'driver'
        if link.exists():
            (link.resolve() / address).unlink(missing_ok=True)
            link.unlink()
        override = driver if driver == _GUEST_DRIVER else '(null)'
        (function / 'driver_override').write_text(f'{override}\n')
        lines = (function / 'uevent').read_text().splitlines()
        lines = [line for line in lines if not line.startswith('DRIVER=')]
        if driver:
            lines.insert(0, f'DRIVER={driver}')
            home = self._root / _DRIVERS / driver
            home.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(home, function))
            (home / address).symlink_to(os.path.relpath(function, home))
        (function / 'uevent').write_text('\n'.join([*lines, '']))
