# SPDX-License-Identifier: Apache-2.0
"""PCI functions in traits, attributes and infos of attach handles."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from cyborg_lite.drivers.host.sysfs import PciFunction

_MAX_NAME_LENGTH: Final = 255  # characters, in Placement
# Functions beside the computing one on the same card, by the first four digits of the
# class code (PCI Code and ID Assignment Specification).
_COMPANIONS: Final = {'0403': 'audio', '0c03': 'USB', '0c80': 'USB-C'}
# Such as `8.0 GT/s PCIe`. Kernels before 5.7 write `8 GT/s`.
_LINK_SPEED: Final = re.compile(r'(\d{1,4})(?:\.(\d))? GT/s')


def custom_name(*words: str) -> str:
    """Return a name that Placement accepts as a custom trait or resource class.

    >>> custom_name('NVIDIA', '1eb8')
    'CUSTOM_NVIDIA_1EB8'
    """
    text = re.sub('[^A-Z0-9_]', '_', '_'.join(words).upper())
    return f'CUSTOM_{text.removeprefix("CUSTOM_")}'[:_MAX_NAME_LENGTH]


def handle_address(info: Mapping[str, str]) -> str:
    """Return the PCI address in the info of a handle; empty if it has none."""
    try:
        return '{domain}:{bus}:{device}.{function}'.format_map(info)
    except KeyError:
        return ''


def handle_info(address: str) -> dict[str, str]:
    """Return a PCI address in the format that Nova reads."""
    domain, bus, slot = address.split(':')
    device, function = slot.split('.')
    return {'domain': domain, 'bus': bus, 'device': device, 'function': function}


def attributes(resource_class: str, traits: Sequence[str]) -> dict[str, str]:
    """Return the attributes in which clients of Cyborg look for class and traits."""
    numbered = {f'trait{number}': trait for number, trait in enumerate(traits)}
    return {'rc': resource_class, **numbered}


def read_link_rate(function: PciFunction, name: str) -> int | None:
    """Return the rate in a file of a link in megatransfers per second, or None."""
    match = _LINK_SPEED.match(function.text(name) or '')
    return int(match[1]) * 1000 + int(match[2] or 0) * 100 if match else None


def name_companion(function: PciFunction) -> str:
    """Return the kind of a function beside a card, such as audio."""
    return _COMPANIONS.get(function.pci_class[:4], 'other')
