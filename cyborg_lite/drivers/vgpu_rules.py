# SPDX-License-Identifier: Apache-2.0
"""What the operator wants each card to be: whole, or cut into vGPUs of some type.

The first rule that fits a card decides. A card that no rule fits is whole.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from oslo_config import cfg, types

from cyborg_lite.drivers.base import Section
from cyborg_lite.drivers.sysfs import pci_address
from cyborg_lite.exceptions import ConfigurationError

WHOLE: Final = 'whole'
_EVERY: Final = '*'
# What may name a card beside its address; with a wildcard anything may.
_CARD: Final = re.compile(r'gpu-[0-9a-f-]+|[0-9a-f]{4}:[0-9a-f]{4}|.*[*?\[].*')

RULES: Final = cfg.ListOpt(
    'vgpu_types',
    default=[],
    item_type=types.String(regex=r'[^=\s]+\s*=\s*[^=\s][^=]*'),
    help="""
Which cards are cut into vGPUs, and into what: `card = type` pairs, the first
that fits a card decides. The card is its PCI address or that of one of its
virtual functions, its GPU uuid or its ids as in 10de:1eb8; `*` in it stands
for anything. The type is an id such as nvidia-231, a number, or a name such
as T4-2Q; several that run in GPU instances (MIG) are joined by `+`; `whole`
keeps the card in one piece. A card that no rule fits is whole. The type of a
card does not change while vGPUs of it are in use; the device shows why.
Example: 0000:3b:00.0 = whole, 10de:1eb8 = T4-2Q, 10de:20f1 =
nvidia-474+nvidia-476.
""",
)

_ENABLED: Final = cfg.ListOpt(
    'enabled_vgpu_types',
    default=[],
    help='vGPU types as Cyborg configures them; heard where no rule fits a card.',
)
_ADDRESSES: Final = cfg.ListOpt(
    'device_addresses', default=[], help='The cards that get this vGPU type.'
)


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: str
    wanted: tuple[str, ...]  # types; none: the card stays whole

    def fits(self, names: Iterable[str]) -> bool:
        return any(fnmatchcase(name.lower(), self.pattern) for name in names)


class Rules:
    """The rules of a host, in their order."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules

    def wanted(self, *names: str) -> tuple[str, ...]:
        """The types for the card of these names; none: it shall be whole."""
        found = (rule for rule in self._rules if rule.fits(names))
        return next((rule.wanted for rule in found), ())


def parse(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Of ``card = type`` pairs, as the option describes them.

    :raises ConfigurationError: one names no card, or nothing that a card can be
    """
    return tuple(_rule(text) for text in texts)


def of_cyborg(section: Section) -> tuple[str, ...]:
    """The pairs that sections of Cyborg's configuration amount to.

    As there, one type without addresses is for all cards, and the first type is, if
    one of several has none.

    :raises ConfigurationError: one card is given two types
    """
    enabled = section('gpu_devices', [_ENABLED])[_ENABLED.dest]
    pairs: dict[str, str] = {}
    for vgpu_type in enabled:
        addresses = section(f'vgpu_{vgpu_type}', [_ADDRESSES])[_ADDRESSES.dest]
        if not addresses:
            return (f'{_EVERY}={enabled[0]}',)
        for address in addresses:
            card = pci_address(address)
            if card is None or pairs.setdefault(card, vgpu_type) != vgpu_type:
                raise ConfigurationError(
                    reason=f'[vgpu_{vgpu_type}] device_addresses: {address} is no PCI '
                    'address, or is given another type too.'
                )
    return tuple(f'{card}={vgpu_type}' for card, vgpu_type in pairs.items())


def _rule(text: str) -> Rule:
    pattern, _, value = text.partition('=')
    card = pattern.strip().lower()
    address = pci_address(card)
    if address is None and not _CARD.fullmatch(card):
        reason = f'{pattern.strip()} in "{text}" is no address, uuid or ids of a card.'
        raise ConfigurationError(reason=reason)
    wanted = tuple(re.split(r'\s*\+\s*', value.strip()))
    whole = wanted == (WHOLE,)
    if not whole and not {'', WHOLE}.isdisjoint(wanted):
        raise ConfigurationError(reason=f'"{text}" says nothing that a card can be.')
    return Rule(address or card, () if whole else wanted)
