# SPDX-License-Identifier: Apache-2.0
"""Configuration of both services for the cards that a plan assigns to them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cyborg_lite.model.ownership.plan import Owner, OwnershipRule

NOVA_FILE: Final = 'nova.conf'
OWN_FILE: Final = 'cyborg-lite.conf'
FLAVORS: Final = 'flavors'
"""Commands for the flavors of Nova, instead of a file."""

_DRIVER: Final = 'nvidia_gpu_driver'


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """A line of a configuration file, or a command."""

    file: str
    section: str  # empty: the line is a command
    text: str


def build_config(rules: Sequence[OwnershipRule]) -> tuple[ConfigLine, ...]:
    """Return the lines for a host, by file and section.

    :param rules: rules for the host
    """
    of_nova = [rule for rule in rules if rule.owner is Owner.NOVA]
    own = [rule for rule in rules if rule.owner is Owner.CYBORG]
    return (
        *_pci_lines(rule for rule in of_nova if not rule.vgpu_type),
        *_mdev_lines([rule for rule in of_nova if rule.vgpu_type]),
        *_exclusion_lines(rule for rule in rules if rule.owner is not Owner.CYBORG),
        *_driver_lines([rule for rule in own if rule.vgpu_type]),
        *_flavor_lines([rule for rule in of_nova if rule.vgpu_type]),
    )


def _pci_lines(rules: Iterable[OwnershipRule]) -> Iterator[ConfigLine]:
    for rule in rules:
        vendor, _, product = rule.card.partition(':')
        spec = {'vendor_id': vendor, 'product_id': product}
        if rule.is_address:
            spec = {'address': rule.card}
        yield ConfigLine(NOVA_FILE, 'pci', f'device_spec = {json.dumps(spec)}')


def _mdev_lines(rules: Sequence[OwnershipRule]) -> Iterator[ConfigLine]:
    by_type: dict[str, list[OwnershipRule]] = defaultdict(list)
    for rule in rules:
        by_type[rule.vgpu_type].append(rule)
    if by_type:
        types = ', '.join(by_type)
        yield ConfigLine(NOVA_FILE, 'devices', f'enabled_mdev_types = {types}')
    for vgpu_type, of_type in by_type.items():
        section = f'mdev_{vgpu_type}'
        addresses = ', '.join(rule.card for rule in of_type if rule.is_address)
        if addresses:
            yield ConfigLine(NOVA_FILE, section, f'device_addresses = {addresses}')
        for name in dict.fromkeys(rule.resource_class for rule in of_type):
            if name:
                yield ConfigLine(NOVA_FILE, section, f'mdev_class = {name}')


def _exclusion_lines(rules: Iterable[OwnershipRule]) -> Iterator[ConfigLine]:
    cards = ', '.join(dict.fromkeys(rule.card for rule in rules))
    if cards:
        yield ConfigLine(OWN_FILE, 'agent', f'excluded_devices = {cards}')


def _driver_lines(rules: Sequence[OwnershipRule]) -> Iterator[ConfigLine]:
    pairs = ', '.join(f'{rule.card} = {rule.vgpu_type}' for rule in rules)
    if pairs:
        yield ConfigLine(OWN_FILE, _DRIVER, f'vgpu_types = {pairs}')
    for name in dict.fromkeys(rule.resource_class for rule in rules):
        if name:
            yield ConfigLine(OWN_FILE, _DRIVER, f'vgpu_resource_class = {name}')


def _flavor_lines(rules: Sequence[OwnershipRule]) -> Iterator[ConfigLine]:
    """Yield the commands that keep other flavors off providers of this service."""
    for name in dict.fromkeys(rule.vgpu_class for rule in rules):
        properties = f'resources:{name}=1 --property trait:OWNER_CYBORG=forbidden'
        command = f'openstack flavor set FLAVOR --property {properties}'
        yield ConfigLine(FLAVORS, '', command)
