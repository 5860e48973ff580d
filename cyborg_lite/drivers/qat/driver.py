# SPDX-License-Identifier: Apache-2.0
"""Intel QuickAssist: virtual functions with the services that the card is set to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host import vfio
from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.card_modes import MODES_OPTION, CardModes, ModesPciDriver
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.model.devices.modes import OfferedInventory, list_inventory
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Device

STATE: Final = 'qat/state'  # file with ``up`` or ``down``
_SERVICES: Final = 'qat/cfg_services'  # names of services, separated by semicolons
_TRAIT: Final = custom_name('QAT_SERVICE', '')  # before the name of a service
_MODES: Final = (
    *('sym;asym', 'sym', 'asym', 'dc', 'dcc'),
    *('sym;dc', 'asym;dc'),
)
# Three services at once are possible from generation 6 on; ``dcc`` is always alone.
_LATER_MODES: Final = (
    *(*_MODES, 'decomp', 'sym;decomp', 'asym;decomp', 'dc;decomp', 'sym;asym;dc'),
    *('sym;asym;decomp', 'sym;dc;decomp', 'asym;dc;decomp'),
)
_SIXTH_GENERATION: Final = ('4948',)


class ServiceModes(CardModes):
    """The combinations of services; none for cards without their file.

    All virtual functions of a card have its services. The kernel changes them only
    while the card is down (kernel: ABI/sysfs-driver-qat).
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def list_inventory(
        self, card: PciFunction, device: Device
    ) -> Mapping[str, Iterable[OfferedInventory]]:
        if card.text(_SERVICES) is None:
            return {}
        inventory = list_inventory(device.root)
        names = _LATER_MODES if card.device in _SIXTH_GENERATION else _MODES
        return {name: _replace_services(inventory, name) for name in names}

    def has_mode(self, card: PciFunction, mode: str) -> bool:
        """Return True if a card is up with these services, in any order."""
        services = card.text(_SERVICES) or ''
        return card.text(STATE) == 'up' and _split(mode) == _split(services)

    def complete_name(self, device: Device, mode: str) -> str:
        """Return the services in the order of the names of modes."""
        return next(
            (name for name in _LATER_MODES if _split(name) == _split(mode)), mode
        )

    def set_mode(self, card: PciFunction, mode: str) -> None:
        """Set the services of a card, which stops it for a moment."""
        vfio.check_functions_closed(self._writer, card)
        write, address = self._writer.set_value, card.address
        number = len(card.virtfns)
        if card.text(STATE) != 'down':
            write(address, STATE, 'down')
        write(address, _SERVICES, mode)
        write(address, STATE, 'up')
        if number and not PciFunction(card.host, address).virtfns:
            # The kernel driver may remove them when the card goes down.
            write(address, 'sriov_numvfs', str(number))


def list_service_traits(function: PciFunction) -> tuple[str, ...]:
    """Return a trait for each service of a card."""
    services = (function.text(_SERVICES) or '').split(';')
    return tuple(custom_name('QAT_SERVICE', name) for name in services if name)


def _replace_services(
    inventory: Iterable[OfferedInventory], services: str
) -> Iterator[OfferedInventory]:
    """Yield the inventory with the traits of other services."""
    traits = [custom_name('QAT_SERVICE', name) for name in services.split(';')]
    for item in inventory:
        fixed = [trait for trait in item.traits if not trait.startswith(_TRAIT)]
        yield replace(item, traits=tuple(sorted([*fixed, *traits])))


def _split(services: str) -> frozenset[str]:
    return frozenset(services.split(';'))


_RAS: Final = 'qat_ras/errors_'
_SIGNALS: Final = ('qat_correctable', 'qat_nonfatal', 'qat_fatal')
_FIRST_GENERATION: Final = ('0435', '19e2', '37c8')


class IntelQat(ModesPciDriver, SharedPciDriver):
    """Driver for Intel QuickAssist cards."""

    NAME: ClassVar[str] = 'intel_qat_driver'
    KERNEL_DRIVERS: ClassVar[Mapping[str, str]]  # by device id
    SIGNALS: ClassVar[Sequence[str]] = (*SharedPciDriver.SIGNALS, *_SIGNALS)
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (*SharedPciDriver.OPTIONS, MODES_OPTION)

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self.card_modes = ServiceModes(self._writer)

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        return (*super().traits(function), *list_service_traits(function))

    def virtual_count(self, card: PciFunction) -> int:
        """Return the configured number; older cards have all functions or none."""
        count = super().virtual_count(card)
        if count and card.device in _FIRST_GENERATION:
            return card.number('sriov_totalvfs') or count
        return count

    def read_usage(self, device: Device) -> Usage:
        """Return the telemetry with the RAS counters (kernel: sysfs-driver-qat_ras)."""
        card = PciFunction(self._host, device.control_address)
        usage = super().read_usage(device)
        errors = {
            name: count
            for name in _SIGNALS
            if (count := card.number(name.replace('qat_', _RAS))) is not None
        }
        return replace(usage, counters={**usage.counters, **errors})

    def find_fault(self, function: PciFunction) -> str | None:
        driver = self.KERNEL_DRIVERS[function.device]
        if function.driver != driver:
            return f'driver {driver} is not bound'
        errors = function.number('qat_ras/errors_fatal')
        fatal = f'fatal errors: {errors}' if errors else None
        down = f'{STATE} is down' if function.text(STATE) == 'down' else None
        return ', '.join(filter(None, (down, fatal))) or None
