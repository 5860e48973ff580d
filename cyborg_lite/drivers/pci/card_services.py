# SPDX-License-Identifier: Apache-2.0
"""Cards whose services are configured, such as encryption; combinations are modes.

All virtual functions of a card have its services. The kernel changes them only while
the card is down (kernel: ABI/sysfs-driver-qat).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.host.kernel import to_driver_error
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.card_modes import MODES_OPTION, DeclaredModes, check_mode
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.exceptions import DeviceGone
from cyborg_lite.model.inventory import Device
from cyborg_lite.model.modes import DeviceMode, OfferedInventory, list_inventory


class ServiceCardDriver(SharedPciDriver):
    """Base of drivers for cards with services; a family is data."""

    STATE: ClassVar[str]  # file with ``up`` or ``down``
    SERVICES: ClassVar[str]  # file with names of services, separated by semicolons
    SERVICE_MODES: ClassVar[tuple[str, ...]]  # services that a card can have at once
    SERVICE_TRAIT: ClassVar[str]  # a trait is this prefix and the name of a service
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (*SharedPciDriver.OPTIONS, MODES_OPTION)

    # Any: each option has its own type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self._declared = DeclaredModes(options, host.name)

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        """Return the combinations of services; none for cards without this file."""
        card = PciFunction(self._host, device.control_address)
        if card.text(self.SERVICES) is None:
            return ()
        inventory = list_inventory(device.root)
        return tuple(
            DeviceMode(
                name,
                tuple(sorted(self._replace_services(inventory, name))),
                is_current=self.has_mode(device, name),
            )
            for name in self.SERVICE_MODES
        )

    def has_mode(self, device: Device, mode: str) -> bool:
        """Return True if a card is up with these services, in any order."""
        card = PciFunction(self._host, device.control_address)
        services = card.text(self.SERVICES) or ''
        return card.text(self.STATE) == 'up' and _split(mode) == _split(services)

    def declared_mode(self, device: Device) -> str | None:
        """Return the declared services in the order of the names of modes."""
        declared = self._declared.find(device)
        for name in self.SERVICE_MODES:
            if declared is not None and _split(declared) == _split(name):
                return name
        return declared

    def set_mode(self, device: Device, mode: str) -> Device:
        """Set the services of a card, which stops it for a moment.

        :raises DeviceBusy: a guest uses a virtual function of the card
        :raises DriverError: the kernel refused
        """
        check_mode(self.modes(device), device, mode)
        card = PciFunction(self._host, device.control_address)
        self.check_unused(card)
        number = len(card.virtfns)
        if card.text(self.STATE) != 'down':
            self._write(card, self.STATE, 'down')
        self._write(card, self.SERVICES, mode)
        self._write(card, self.STATE, 'up')
        if number and not PciFunction(self._host, card.address).virtfns:
            # The kernel driver may remove them when the card goes down.
            self._write(card, 'sriov_numvfs', str(number))
        result = self.classify(PciFunction(self._host, card.address))
        if result is None or result.device is None:
            raise DeviceGone(address=card.address)
        return result.device

    def list_service_traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return a trait for each service of a card."""
        services = (function.text(self.SERVICES) or '').split(';')
        return tuple(self._build_trait(name) for name in services if name)

    def find_fault(self, function: PciFunction) -> str | None:
        """Return that the card is down, or None."""
        if function.text(self.STATE) == 'down':
            return f'{self.STATE} is down'
        return None

    def _build_trait(self, service: str) -> str:
        return custom_name(self.SERVICE_TRAIT, service)

    def _replace_services(
        self, inventory: Iterable[OfferedInventory], services: str
    ) -> Iterator[OfferedInventory]:
        """Yield the inventory with the traits of other services."""
        traits = [self._build_trait(name) for name in services.split(';')]
        prefix = self._build_trait('')
        for item in inventory:
            fixed = [trait for trait in item.traits if not trait.startswith(prefix)]
            yield replace(item, traits=tuple(sorted([*fixed, *traits])))

    def _write(self, card: PciFunction, name: str, text: str) -> None:
        try:
            self._writer.write(card.address, card.path(name), text)
        except OSError as error:
            action = f'{name} cannot be set to {text}'
            raise to_driver_error(card.address, action, error) from None


def _split(services: str) -> frozenset[str]:
    return frozenset(services.split(';'))
