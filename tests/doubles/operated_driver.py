# SPDX-License-Identifier: Apache-2.0
"""Driver of a card with two modes that is cleaned after use; its state is in a folder.

A file ``refuse-mode`` or ``refuse-clean`` in the folder lets the operation fail.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from oslo_config import cfg

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

RESOURCE_CLASS: Final = 'CUSTOM_OPERATED'
MODES: Final = ('a', 'b')
_ADDRESS: Final = 'fa51:0c:00.0'


class OperatedDriver:
    """Driver of one card with one unit."""

    NAME: ClassVar[str] = 'operated_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.StrOpt('folder', default='/nowhere', help='Folder of the state.'),
    )

    # Any: options of drivers have any type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._folder = Path(options['folder'])

    def discover(self) -> Iterator[DiscoveryResult]:
        """Return the card in its mode."""
        yield DiscoveryResult(
            _ADDRESS, 'fa51:0001', '', self.NAME, 'exists only here', self._device()
        )

    # --- modes ---

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        """Return both modes."""
        return [
            DeviceMode(name, (self._offer(name),), self.has_mode(device, name))
            for name in MODES
        ]

    def has_mode(self, device: Device, mode: str) -> bool:
        """Check whether the card has a mode."""
        return self._mode == mode

    def declared_mode(self, device: Device) -> str | None:
        """Return None: no option declares a mode."""
        return None

    def set_mode(self, device: Device, mode: str) -> Device:
        """Write the mode.

        :raises DriverError: the folder holds a file ``refuse-mode``
        """
        if mode != self._mode and (self._folder / 'refuse-mode').exists():
            raise DriverError(reason='The card refuses the mode.')
        (self._folder / 'mode').write_text(mode)
        return self._device()

    # --- cleans ---

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        """Return one step."""
        return (CleanStep('erase', 'all data'),)

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        """Do nothing.

        :raises DriverError: the folder holds a file ``refuse-clean``
        """
        if (self._folder / 'refuse-clean').exists():
            raise DriverError(reason='The card refuses to be cleaned.')
        return 'eraser 1.0'

    @property
    def _mode(self) -> str:
        file = self._folder / 'mode'
        return file.read_text() if file.exists() else MODES[0]

    def _offer(self, mode: str) -> OfferedInventory:
        return OfferedInventory(RESOURCE_CLASS, 1, (f'CUSTOM_MODE_{mode.upper()}',))

    def _device(self) -> Device:
        info = {'domain': 'fa51', 'bus': '0c', 'device': '00', 'function': '0'}
        handle = AttachHandle(
            _ADDRESS, HandleType.PCI, info, cleaning=CleaningPolicy.AFTER_USE
        )
        offer = self._offer(self._mode)
        root = Deployable(
            name=f'{self._host.name}_{_ADDRESS}',
            resource_class=offer.resource_class,
            traits=('OWNER_CYBORG', *offer.traits),
            total=offer.total,
            handles=(handle,),
        )
        return Device(
            type='GPU',
            vendor='fa51',
            model='Operated',
            driver='operated',
            control_address=_ADDRESS,
            hardware_id=_ADDRESS,
            root=root,
        )
