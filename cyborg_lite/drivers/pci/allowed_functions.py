# SPDX-License-Identifier: Apache-2.0
"""Entries of the operator that allow PCI functions to be given to guests.

An entry is a JSON object. The keys that select functions are those of ``[pci]
device_spec`` of Nova, and ``class``. The other keys say how the functions are offered.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import os_resource_classes
from oslo_utils import strutils

from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.model.ownership import nova_config
from cyborg_lite.model.ownership.nova_config import NovaDeviceClaim, NovaPciFunction

DEFAULT_CLASS: Final = 'CUSTOM_PCI'
_SELECTORS: Final = ('vendor_id', 'product_id', 'address', 'devname', 'class')
_SETTINGS: Final = (
    'resource_class',
    'traits',
    'device_type',
    'managed',
    'physical_network',
    'cleaning',
)
_CLASS: Final = re.compile('[0-9a-f]{2,6}')
_DEVICE_TYPES: Final = ('PCI', 'GPU', 'FPGA', 'AICHIP', 'QAT', 'NIC', 'SSD')


@dataclass(frozen=True, slots=True)
class AllowedFunctions:
    """PCI functions that the operator allows, and how they are offered."""

    claim: NovaDeviceClaim
    pci_class: str  # prefix of the class code; empty: any class
    resource_class: str = DEFAULT_CLASS
    traits: tuple[str, ...] = ()  # in addition to those of every function
    device_type: str = 'PCI'
    is_managed: bool = True
    physical_network: str = ''  # empty: none
    cleaning: CleaningPolicy | None = None  # None: that of the driver

    def covers(self, function: NovaPciFunction, pci_class: str) -> bool:
        """Return True if the entry selects a function."""
        return pci_class.startswith(self.pci_class) and self.claim.covers(function)


def parse_entries(texts: Iterable[str]) -> tuple[AllowedFunctions, ...]:
    """Parse JSON objects, or lists of them.

    :raises ConfigurationError: an entry is invalid, or it selects all functions
    """
    return tuple(entry for text in texts for entry in _parse_text(text))


def _parse_text(text: str) -> Iterable[AllowedFunctions]:
    try:
        specs = nova_config.parse_specs(text)
    except ValueError:
        reason = f'{text} is not JSON, or has an invalid id, address or pattern.'
        raise ConfigurationError(reason=reason) from None
    for spec in specs:
        try:
            yield _parse_entry(spec, text)
        except ValueError as error:
            raise ConfigurationError(reason=f'{text}: {error}') from None


# Any: values of JSON are of many types.
def _parse_entry(spec: Mapping[str, Any], source: str) -> AllowedFunctions:
    """Return the entry of a JSON object.

    :raises ValueError: the entry is invalid
    """
    unknown = sorted(spec.keys() - {*_SELECTORS, *_SETTINGS})
    if unknown:
        keys = ', '.join((*_SELECTORS, *_SETTINGS))
        raise ValueError(f'unknown key {unknown[0]}. Allowed keys: {keys}.')
    if spec.keys().isdisjoint(_SELECTORS):
        raise ValueError(f'name at least one of {", ".join(_SELECTORS)}.')
    device_type = spec.get('device_type', 'PCI')
    if device_type not in _DEVICE_TYPES:
        raise ValueError(f'device_type must be one of {", ".join(_DEVICE_TYPES)}.')
    selectors = {key: spec[key] for key in _SELECTORS if key in spec}
    return AllowedFunctions(
        claim=NovaDeviceClaim(source, selectors),
        pci_class=_read_class(spec),
        resource_class=_to_resource_class(_read_text(spec, 'resource_class')),
        traits=tuple(map(custom_name, _read_list(spec, 'traits'))),
        device_type=device_type,
        is_managed=strutils.bool_from_string(spec.get('managed', True), strict=True),
        physical_network=_read_text(spec, 'physical_network'),
        cleaning=_read_policy(spec),
    )


# Any: values of JSON are of many types.
def _read_class(spec: Mapping[str, Any]) -> str:
    """Return the first digits of the class code in an entry; empty if it has none."""
    digits = _read_text(spec, 'class').lower().removeprefix('0x')
    if 'class' in spec and not _CLASS.fullmatch(digits):
        raise ValueError('class must be 2 to 6 hexadecimal digits.')
    return digits


# Any: values of JSON are of many types.
def _read_policy(spec: Mapping[str, Any]) -> CleaningPolicy | None:
    """Return the cleaning policy of an entry; None if it states none."""
    policies = [policy.value for policy in CleaningPolicy]
    if 'cleaning' not in spec:
        return None
    if spec['cleaning'] not in policies:
        raise ValueError(f'cleaning must be one of {", ".join(policies)}.')
    return CleaningPolicy(spec['cleaning'])


def _to_resource_class(name: str) -> str:
    if not name:
        return DEFAULT_CLASS
    is_standard = name.upper() in os_resource_classes.STANDARDS
    return name.upper() if is_standard else custom_name(name)


def _read_text(spec: Mapping[str, Any], key: str) -> str:
    value = spec.get(key, '')
    if not isinstance(value, str):
        raise ValueError(f'{key} must be a string.')
    return value


def _read_list(spec: Mapping[str, Any], key: str) -> list[str]:
    """Return the items of a list, or of a text with commas as in Nova."""
    value = spec.get(key, [])
    items = value.split(',') if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f'{key} must be a list of strings.')
    return [item.strip() for item in items if item.strip()]
