# SPDX-License-Identifier: Apache-2.0
"""Intel QuickAssist: virtual functions with the services that the card is set to.

The services of a card of the fourth generation are its mode.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.card_modes import MODES_OPTION, DeclaredModes, check_mode
from cyborg_lite.drivers.host.kernel import to_driver_error
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci import custom_name
from cyborg_lite.drivers.shared_pci import SharedPciDriver
from cyborg_lite.exceptions import DeviceGone
from cyborg_lite.model.inventory import Device
from cyborg_lite.model.modes import DeviceMode, OfferedInventory, list_inventory
from cyborg_lite.model.traits import OWNER_CYBORG

# Driver and name of the cards by device id (kernel: adf_accel_devices.h).
_CARDS: Final[Mapping[str, tuple[str, str]]] = {
    '0435': ('dh895xcc', 'QuickAssist DH895xCC'),
    '19e2': ('c3xxx', 'QuickAssist C3xxx'),
    '37c8': ('c6xx', 'QuickAssist C62x'),
    '4940': ('4xxx', 'QuickAssist 4xxx'),
    '4942': ('4xxx', 'QuickAssist 401xx'),
    '4944': ('4xxx', 'QuickAssist 402xx'),
    '4946': ('420xx', 'QuickAssist 420xx'),
}
_FIRST_GENERATION: Final = ('0435', '19e2', '37c8')
# Services that a card can have at once (kernel: ABI/sysfs-driver-qat).
_MODES: Final = ('sym;asym', 'sym', 'asym', 'dc', 'dcc', 'sym;dc', 'asym;dc')
_STATE: Final = 'qat/state'
_SERVICES: Final = 'qat/cfg_services'
_SERVICE_TRAIT: Final = custom_name('QAT_SERVICE', '')


class IntelQat(SharedPciDriver):
    """Driver for Intel QuickAssist cards."""

    NAME: ClassVar[str] = 'intel_qat_driver'
    VENDOR: ClassVar[str] = '8086'
    VENDOR_NAME: ClassVar[str] = 'INTEL'
    CLASSES: ClassVar[tuple[str, ...]] = ('0b40',)
    DEVICE_TYPE: ClassVar[str] = 'QAT'
    RESOURCE_CLASS: ClassVar[str] = 'CUSTOM_QAT'
    MODELS: ClassVar[Mapping[str, str]] = {
        key: name for key, (_, name) in _CARDS.items()
    }
    IS_LIMITED: ClassVar[bool] = True
    OFFERS_WHOLE: ClassVar[bool] = False
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (*SharedPciDriver.OPTIONS, MODES_OPTION)

    # Any: each option has its own type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self._declared = DeclaredModes(options, host.name)

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        """Return the combinations of services; none for cards without this file."""
        card = PciFunction(self._host, device.control_address)
        if card.text(_SERVICES) is None:
            return ()
        offered = list_inventory(device.root)
        return tuple(
            DeviceMode(
                name,
                tuple(sorted(_replace_services(offered, name))),
                is_current=self.has_mode(device, name),
            )
            for name in _MODES
        )

    def has_mode(self, device: Device, mode: str) -> bool:
        """Return True if a card is up with these services, in any order."""
        card = PciFunction(self._host, device.control_address)
        services = card.text(_SERVICES) or ''
        return card.text(_STATE) == 'up' and _split(mode) == _split(services)

    def declared_mode(self, device: Device) -> str | None:
        """Return the declared services in the order of the names of modes."""
        declared = self._declared.find(device)
        for name in _MODES:
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
        if card.text(_STATE) != 'down':
            self._write(card, _STATE, 'down')
        self._write(card, _SERVICES, mode)
        self._write(card, _STATE, 'up')
        if number and not PciFunction(self._host, card.address).virtfns:
            # The kernel driver may remove them when the card goes down.
            self._write(card, 'sriov_numvfs', str(number))
        result = self.classify(PciFunction(self._host, card.address))
        if result is None or result.device is None:
            raise DeviceGone(address=card.address)
        return result.device

    def _write(self, card: PciFunction, name: str, text: str) -> None:
        try:
            self._writer.write(card.address, card.path(name), text)
        except OSError as error:
            action = f'{name} cannot be set to {text}'
            raise to_driver_error(card.address, action, error) from None

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return vendor, product and services (kernel: ABI/sysfs-driver-qat)."""
        services = (function.text(_SERVICES) or '').split(';')
        names = [
            'QAT_INTEL',
            f'QAT_PRODUCT_ID_{function.device}',
            *(f'QAT_SERVICE_{service}' for service in services if service),
        ]
        return OWNER_CYBORG, *map(custom_name, names)

    def virtual_count(self, card: PciFunction) -> int:
        """Return the configured number; older cards have all functions or none."""
        count = super().virtual_count(card)
        if count and card.device in _FIRST_GENERATION:
            return card.number('sriov_totalvfs') or count
        return count

    def find_fault(self, function: PciFunction) -> str | None:
        """Return why the card provides no service, or None if it does."""
        driver, _ = _CARDS[function.device]
        if function.driver != driver:
            return f'driver {driver} is not bound'
        errors = function.number('qat_ras/errors_fatal')
        faults = [f'fatal errors: {errors}'] if errors else []
        if function.text(_STATE) == 'down':
            faults.insert(0, 'qat/state is down')
        return ', '.join(faults) or None


def _split(services: str) -> frozenset[str]:
    return frozenset(services.split(';'))


def _replace_services(
    inventory: Iterable[OfferedInventory], services: str
) -> Iterator[OfferedInventory]:
    """Yield the inventory with the traits of other services."""
    traits = [_SERVICE_TRAIT + name.upper() for name in services.split(';')]
    for item in inventory:
        fixed = [trait for trait in item.traits if not trait.startswith(_SERVICE_TRAIT)]
        yield replace(item, traits=tuple(sorted([*fixed, *traits])))
