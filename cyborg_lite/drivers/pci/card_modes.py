# SPDX-License-Identifier: Apache-2.0
"""Modes that the operator declares for cards, as ``card = mode`` pairs."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from oslo_config import cfg, types

from cyborg_lite.drivers.host.sysfs import pci_address
from cyborg_lite.exceptions import ConfigurationError, DriverError
from cyborg_lite.model.inventory import Device
from cyborg_lite.model.modes import MODE_NAME, DeviceMode

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

    # Any: each option has its own type.
    def __init__(self, options: Mapping[str, Any], hostname: str) -> None:
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


def check_mode(modes: Iterable[DeviceMode], device: Device, name: str) -> None:
    """Check that a device has a mode.

    :raises DriverError: it has not
    """
    names = [mode.name for mode in modes]
    if name not in names:
        reason = (
            f'Device {device.control_address} has no mode {name}. It has: '
            f'{", ".join(names) or "none"}.'
        )
        raise DriverError(reason=reason)


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
