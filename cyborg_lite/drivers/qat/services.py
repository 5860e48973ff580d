# SPDX-License-Identifier: Apache-2.0
"""Services of QuickAssist cards, such as encryption; combinations are modes.

All virtual functions of a card have its services. The kernel changes them only while
the card is down (kernel: ABI/sysfs-driver-qat).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from cyborg_lite.drivers.host import vfio
from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.pci.card_modes import CardModes
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.model.devices.modes import OfferedInventory, list_inventory
from cyborg_lite.model.inventory.host_report import Device

STATE: Final = 'qat/state'  # file with ``up`` or ``down``
_SERVICES: Final = 'qat/cfg_services'  # names of services, separated by semicolons
_TRAIT: Final = custom_name('QAT_SERVICE', '')  # before the name of a service
_MODES: Final = (
    *('sym;asym', 'sym', 'asym', 'dc', 'dcc'),
    *('sym;dc', 'asym;dc'),
)


class ServiceModes(CardModes):
    """The combinations of services; none for cards without their file."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def list_inventory(
        self, card: PciFunction, device: Device
    ) -> Mapping[str, Iterable[OfferedInventory]]:
        if card.text(_SERVICES) is None:
            return {}
        inventory = list_inventory(device.root)
        return {name: _replace_services(inventory, name) for name in _MODES}

    def has_mode(self, card: PciFunction, mode: str) -> bool:
        """Return True if a card is up with these services, in any order."""
        services = card.text(_SERVICES) or ''
        return card.text(STATE) == 'up' and _split(mode) == _split(services)

    def complete_name(self, device: Device, mode: str) -> str:
        """Return the services in the order of the names of modes."""
        return next((name for name in _MODES if _split(name) == _split(mode)), mode)

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
