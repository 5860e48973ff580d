# SPDX-License-Identifier: Apache-2.0
"""A blade that is no PCI function, with all optional functions of a driver.

Its files are below ``srv/acme``. Each unit has a file with the ARQ that uses it, and a
file with its data.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.host.kernel import CHANGE_TIMEOUT, Writer, to_driver_error
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.devices.modes import DeviceMode, OfferedInventory
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    CleaningPolicy,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)
from cyborg_lite.model.traits import OWNER_CYBORG

_ADDRESS: Final = 'acme-blade'
_CLASS: Final = 'CUSTOM_ACME_BLADE'
_TRAITS: Final = (OWNER_CYBORG, 'CUSTOM_ACME_BLADE')
_DIRECTORY: Final = 'srv/acme'
_PARTITION: Final = f'{_DIRECTORY}/partition'
_MODE: Final = f'{_DIRECTORY}/mode'
_UNITS: Final = {'single': 1, 'dual': 2}  # by mode


class AcmeBlade:
    """Driver for the blade. Both units of the mode ``dual`` are given together."""

    NAME: ClassVar[str] = 'acme_blade_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (CHANGE_TIMEOUT,)

    # Any: each option has its own type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._writer = Writer(host.root, host.kernel, options['change_timeout'])

    def discover(self) -> Iterator[DiscoveryResult]:
        """Yield the blade if the host has one."""
        if self._host.has(_DIRECTORY):
            reason = f'blade in mode {self._read_mode()}'
            device = self._build_device()
            yield DiscoveryResult(_ADDRESS, 'acme', '', self.NAME, reason, device)

    def prepare(self, handle: AllocatedHandle) -> None:
        """Record the ARQ that uses a unit."""
        self._write(_owner_path(handle), handle.arq_uuid)

    def connect(self, handle: AllocatedHandle) -> None:
        """Record that the instance of a unit is spawned."""
        text = f'{handle.arq_uuid} in {handle.instance_uuid}'
        self._write(_owner_path(handle), text)

    def release(self, handle: AllocatedHandle) -> None:
        """Remove the record of a unit."""
        self._write(_owner_path(handle), '')

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        """Return True if a unit has a record."""
        return self._host.has(_owner_path(handle))

    def find_group(self, handle: AllocatedHandle) -> str:
        """Return the name of the only group."""
        return 'blade'

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        """Record the members of the partition."""
        self._write(_PARTITION, ' '.join(sorted(member.key for member in members)))

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        """Remove the partition."""
        self._write(_PARTITION, '')

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        """Return the only step."""
        return (CleanStep('erase', 'all data of the unit'),)

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        """Erase the data of a unit; no tool is needed."""
        self._write(f'{_owner_path(handle)}-data', '0')
        return ''

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        """Return both modes."""
        current = self._read_mode()
        return tuple(
            DeviceMode(
                name, (OfferedInventory(_CLASS, total, _TRAITS),), name == current
            )
            for name, total in _UNITS.items()
        )

    def has_mode(self, device: Device, mode: str) -> bool:
        """Return True for both modes."""
        return mode in _UNITS

    def declared_mode(self, device: Device) -> str | None:
        """Return None: no option declares a mode."""
        return None

    def set_mode(self, device: Device, mode: str) -> Device:
        """Set the number of units."""
        self._write(_MODE, mode)
        return self._build_device()

    def _read_mode(self) -> str:
        text = self._host.text(_MODE) or ''
        return text if text in _UNITS else 'single'

    def _build_device(self) -> Device:
        total = _UNITS[self._read_mode()]
        handles = tuple(
            AttachHandle(
                f'{_ADDRESS}/{number}',
                HandleType.TEST_PCI,
                {'unit': str(number)},
                needs_host=True,
                cleaning=CleaningPolicy.AFTER_USE,
            )
            for number in range(total)
        )
        root = Deployable(
            name=f'{self._host.name}_{_ADDRESS}',
            resource_class=_CLASS,
            traits=_TRAITS,
            total=total,
            handles=handles,
            attributes={'group_size': str(total)},
        )
        name = 'Acme blade'
        return Device('AICHIP', 'acme', name, 'ACME', _ADDRESS, _ADDRESS, root)

    def _write(self, path: str, text: str) -> None:
        """Write a file, or remove it if the text is empty.

        :raises DriverError: the kernel refused it or did not answer in time
        """
        if not text and not self._host.has(path):
            return
        try:
            self._writer.write(_ADDRESS, path, text)
        except OSError as error:
            raise to_driver_error(_ADDRESS, f'write {path}', error) from None


def _owner_path(handle: AllocatedHandle) -> str:
    number = handle.key.rpartition('/')[2]
    if not number.isdecimal():
        raise DriverError(reason=f'{handle.key} is no unit of a blade.')
    return f'{_DIRECTORY}/unit{number}'
