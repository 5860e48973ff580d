# SPDX-License-Identifier: Apache-2.0
"""Rules of the operator that assign a value to cards, as ``card = value`` pairs.

The first rule that matches a card applies. A card that no rule matches is offered as
a whole.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from oslo_config import cfg, types

from cyborg_lite.drivers.base import Section
from cyborg_lite.drivers.host.sysfs import pci_address
from cyborg_lite.errors.daemons import ConfigurationError

WHOLE: Final = 'whole'
_ALL_CARDS: Final = '*'
# Ways to name a card other than its PCI address. A pattern may have any form.
_CARD: Final = re.compile(r'gpu-[0-9a-f-]+|[0-9a-f]{4}:[0-9a-f]{4}|.*[*?\[].*')

VGPU_TYPES: Final = cfg.ListOpt(
    'vgpu_types',
    default=[],
    item_type=types.String(regex=r'^[^=\s]+\s*=\s*[^=\s][^=]*$'),
    help="""
vGPU types of cards, as `card = type` pairs; the first pair that matches a
card applies. `card` is the PCI address of the card or of one of its virtual
functions, its GPU uuid, or its ids as in 10de:1eb8; `*` matches any text.
`type` is an id such as nvidia-231, a number, or a name such as T4-2Q. Join
types that run in GPU instances (MIG) by `+`. `whole` offers the card as one
GPU, as do cards that no pair matches. The type of a card does not change
while vGPUs of it are in use; the health reason of the device shows this.
Example: 0000:3b:00.0 = whole, 10de:1eb8 = T4-2Q, 10de:20f1 =
nvidia-474+nvidia-476.
""",
)

VGPU: Final = 'VGPU'

VGPU_CLASS: Final = cfg.StrOpt(
    'vgpu_resource_class',
    default=VGPU,
    regex=r'^(VGPU|CUSTOM_[A-Z0-9_]+)$',
    help="""
Resource class of the vGPUs and virtual functions of this driver. Set it to a
custom class, such as CUSTOM_CYBORG_VGPU, if Nova creates vGPUs on this host
as well: Nova takes each allocation of the class VGPU on a host as a vGPU of
its own. Device profiles must then request the custom class. The class of a
card does not change while its vGPUs are in use.
""",
)

_ENABLED: Final = cfg.ListOpt(
    'enabled_vgpu_types',
    default=[],
    help='vGPU types as configured for Cyborg; apply where no rule matches a card.',
)
_ADDRESSES: Final = cfg.ListOpt(
    'device_addresses', default=[], help='PCI addresses of cards with this vGPU type.'
)


@dataclass(frozen=True, slots=True)
class CardRule:
    """A ``card = value`` pair."""

    pattern: str
    values: tuple[str, ...]  # empty: the card stays whole


def find_values(rules: Iterable[CardRule], *names: str) -> tuple[str, ...]:
    """Return the values of the first rule that matches one of the names of a card.

    :returns: empty if no rule matches or the card stays whole
    """
    for rule in rules:
        if any(fnmatchcase(name.lower(), rule.pattern) for name in names):
            return rule.values
    return ()


def parse_rules(texts: Iterable[str]) -> tuple[CardRule, ...]:
    """Parse ``card = value`` pairs.

    :raises ConfigurationError: a pair names no card, or has no valid value
    """
    return tuple(_parse_rule(text) for text in texts)


def read_cyborg_rules(section: Section) -> tuple[str, ...]:
    """Return the ``card = type`` pairs for the vGPU sections of Cyborg.

    As in Cyborg, a single type without addresses applies to all cards. If one of
    several types has no addresses, the first type applies to all cards.

    :raises ConfigurationError: a card has two types, or an address is malformed
    """
    enabled = section('gpu_devices', [_ENABLED])[_ENABLED.dest]
    pairs: dict[str, str] = {}
    for vgpu_type in enabled:
        addresses = section(f'vgpu_{vgpu_type}', [_ADDRESSES])[_ADDRESSES.dest]
        if not addresses:
            return (f'{_ALL_CARDS}={enabled[0]}',)
        for address in addresses:
            card = pci_address(address)
            if card is None or pairs.setdefault(card, vgpu_type) != vgpu_type:
                raise ConfigurationError(
                    reason=f'[vgpu_{vgpu_type}] device_addresses: {address} is not a '
                    'PCI address, or another vGPU type has it, too.'
                )
    return tuple(f'{card}={vgpu_type}' for card, vgpu_type in pairs.items())


def _parse_rule(text: str) -> CardRule:
    pattern, _, value = text.partition('=')
    card = pattern.strip().lower()
    address = pci_address(card)
    if address is None and not _CARD.fullmatch(card):
        reason = f'{pattern.strip()} in "{text}" is not an address, uuid or ids.'
        raise ConfigurationError(reason=reason)
    values = tuple(re.split(r'\s*\+\s*', value.strip()))
    is_whole = values == (WHOLE,)
    if not is_whole and not {'', WHOLE}.isdisjoint(values):
        raise ConfigurationError(reason=f'"{text}" has no valid type.')
    return CardRule(address or card, () if is_whole else values)
