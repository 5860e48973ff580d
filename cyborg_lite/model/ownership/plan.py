# SPDX-License-Identifier: Apache-2.0
"""Statement of the operator which service owns each card.

It is a mapping of hosts to mappings of cards to owners. The first host that matches and
has a matching card decides. ``*`` in a host name or for a card matches any text:

    compute-1:
      0000:3b:00.0: nova
    gpu-*:
      10de:1eb8: nobody
      "*": cyborg
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from cyborg_lite.errors.daemons import ConfigurationError


@dataclass(frozen=True, slots=True)
class OwnedDevice:
    """A reported device, and the other service that manages it."""

    hostname: str
    address: str
    vendor: str  # for PCI devices four hex digits, like the product
    product: str
    model: str
    driver: str
    conflict: str  # empty: no other service
    schedulable: bool  # False: its driver does not offer it
    reason: str  # of the health

    @property
    def owner(self) -> str:
        """The owner as shown to operators."""
        if self.conflict:
            return 'both'
        return 'this service' if self.schedulable else 'nobody'

    @property
    def owner_reason(self) -> str:
        """Reason for a conflict, or why the device is not offered."""
        return self.conflict or ('' if self.schedulable else self.reason)


ANY_CARD: Final = '*'
"""The card of a rule for all cards."""

_ADDRESS: Final = re.compile(r'[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]')
_IDS: Final = re.compile(r'[0-9a-f]{4}:[0-9a-f]{4}')


class Owner(enum.StrEnum):
    """Owner of a card."""

    CYBORG = 'cyborg'  # this service
    NOVA = 'nova'
    NOBODY = 'nobody'


@dataclass(frozen=True, slots=True)
class OwnershipRule:
    """The owner of the cards of a host that match."""

    host: str  # may contain `*`
    card: str  # address, `vendor:product` or `*`
    owner: Owner

    def covers(self, hostname: str, address: str, ids: str) -> bool:
        """Check whether the rule concerns a card.

        :param ids: ``vendor:product`` in hex digits
        """
        names = (ANY_CARD, address.lower(), ids.lower())
        return fnmatchcase(hostname, self.host) and self.card in names


@dataclass(frozen=True, slots=True)
class OwnershipPlan:
    """The rules, in order. An empty plan states nothing."""

    rules: tuple[OwnershipRule, ...] = ()

    def find_rule(self, hostname: str, address: str, ids: str) -> OwnershipRule | None:
        """Return the first rule for a card, or None if no owner is stated."""
        matches = (r for r in self.rules if r.covers(hostname, address, ids))
        return next(matches, None)


def parse_plan(content: object) -> OwnershipPlan:
    """Return the plan in the content of a file. All scalars are strings.

    :raises ConfigurationError: the content is not a valid plan
    """
    rules = (
        _parse_card(host, card.lower(), value)
        for host, cards in _items(content or {}, 'the file')
        for card, value in _items(cards, f'host {host}')
    )
    return OwnershipPlan(tuple(rules))


def _parse_card(host: str, card: str, value: object) -> OwnershipRule:
    subject = f'host {host}, card {card}'
    if not (card == ANY_CARD or _ADDRESS.fullmatch(card) or _IDS.fullmatch(card)):
        raise _error(f'{subject}: use a PCI address, vendor:product or "*".')
    try:
        owner = Owner(str(value))
    except ValueError:
        owners = ', '.join(Owner)
        raise _error(f'{subject}: the owner must be one of {owners}.') from None
    return OwnershipRule(host, card, owner)


def _items(value: object, subject: str) -> list[tuple[str, object]]:
    if not isinstance(value, Mapping):
        raise _error(f'{subject} must contain a mapping.')
    return [(str(key), item) for key, item in value.items()]


def _error(reason: str) -> ConfigurationError:
    return ConfigurationError(reason=f'Ownership file: {reason}')
