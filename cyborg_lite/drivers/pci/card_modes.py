# SPDX-License-Identifier: Apache-2.0
"""Modes that the operator declares for cards, as ``card = mode`` pairs."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from oslo_config import cfg, types

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host.sysfs import Host, PciFunction, pci_address
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.modes import MODE_NAME, DeviceMode, OfferedInventory
from cyborg_lite.model.inventory.host_report import Device

MODES_OPTION: Final = cfg.ListOpt(
    'modes',
    default=[],
    item_type=types.String(regex=r'^[^=]*[^=\s]\s*=\s*[^=\s]+$'),
    help="""
Modes of cards, as `card = mode` pairs; the first pair that matches a card
applies. `card` is the PCI address of the card, its ids as in 8086:4940, its
model, or one of these after a host name and a slash, as in
compute-7/8086:4940; `*` matches any text. Run `openstack accelerator device
mode list DEVICE` to see the modes of a card and what a change does, and
`openstack accelerator device mode apply HOST` to change the cards that no
instance uses. The agent restores the modes after a reboot of the host.
""",
)


class DeclaredModes:
    """The ``card = mode`` pairs of one driver."""

    def __init__(self, options: Options, hostname: str) -> None:
        """Parse the option ``modes``.

        :raises ConfigurationError: a mode has an invalid name
        """
        self._hostname = hostname
        self._rules = tuple(_parse_rule(text) for text in options.get('modes', ()))

    def find(self, device: Device) -> str | None:
        """Return the mode declared for a device, or None."""
        names = _list_names(device)
        names += [f'{self._hostname}/{name}' for name in names]
        for pattern, mode in self._rules:
            if any(fnmatchcase(name.lower(), pattern) for name in names):
                return mode
        return None

    def list_names(self) -> tuple[str, ...]:
        """Return the names of all declared modes, without repetition."""
        return tuple(dict.fromkeys(mode for _, mode in self._rules))


class CardModes:
    """Base of the modes of the cards of one driver."""

    def list_inventory(
        self, card: PciFunction, device: Device
    ) -> Mapping[str, Iterable[OfferedInventory]]:
        """Return what a card offers in each of its modes. Must be read-only."""
        raise NotImplementedError

    def has_mode(self, card: PciFunction, mode: str) -> bool:
        """Return True if a card may have a mode now. Must be read-only."""
        raise NotImplementedError

    def set_mode(self, card: PciFunction, mode: str) -> None:
        """Set a mode that the card can have, as ``SetsModes.set_mode``.

        :raises DeviceBusy: a guest or a program of the host uses the card
        :raises DriverError: it failed
        """
        raise NotImplementedError

    def is_possible(self, card: PciFunction, device: Device, mode: str) -> bool:
        """Return True if a card can have a mode."""
        return mode in self.list_inventory(card, device)

    def complete_name(self, device: Device, mode: str) -> str:
        """Return the name of the mode that an operator means by a text."""
        return mode


class ModesPciDriver(PciDriver):
    """A driver with the option ``modes``; its constructor sets ``card_modes``."""

    card_modes: CardModes

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self.declared_modes = DeclaredModes(options, host.name)

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        card = PciFunction(self._host, device.control_address)
        modes = self.card_modes.list_inventory(card, device)
        return tuple(
            DeviceMode(name, tuple(sorted(items)), self.has_mode(device, name))
            for name, items in modes.items()
        )

    def has_mode(self, device: Device, mode: str) -> bool:
        card = PciFunction(self._host, device.control_address)
        return self.card_modes.has_mode(card, mode)

    def declared_mode(self, device: Device) -> str | None:
        declared = self.declared_modes.find(device)
        return declared and self.card_modes.complete_name(device, declared)

    def set_mode(self, device: Device, mode: str) -> Device:
        card = PciFunction(self._host, device.control_address)
        if not self.card_modes.is_possible(card, device, mode):
            names = ', '.join(self.card_modes.list_inventory(card, device)) or 'none'
            reason = f'Device {card.address} has no mode {mode}. It has: {names}.'
            raise DriverError(reason=reason)
        self.card_modes.set_mode(card, mode)
        return self.read_device(card.address)


def _list_names(device: Device) -> list[str]:
    ids = f'{device.vendor}:{device.std_board_info.get("product_id", "")}'
    return [device.control_address, ids, device.model, device.hardware_id]


def _parse_rule(text: str) -> tuple[str, str]:
    pattern, _, mode = (word.strip() for word in text.partition('='))
    if not MODE_NAME.fullmatch(mode):
        raise ConfigurationError(reason=f'"{text}" has no valid mode.')
    host, slash, card = pattern.rpartition('/')
    card = pci_address(card.lower()) or card.lower()
    return f'{host.lower()}{slash}{card}', mode
