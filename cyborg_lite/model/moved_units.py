# SPDX-License-Identifier: Apache-2.0
"""Which unit is which when a card was put into another slot.

Keys of units are addresses, and have changed with the slot. What stays is how far a
function is from the one that manages the card: PCI Express Base Specification, SR-IOV,
First VF Offset and VF Stride.
"""

import re
from collections.abc import Collection, Hashable, Mapping
from typing import Final

_ADDRESS: Final = re.compile(
    r'([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])(.*)', re.IGNORECASE
)


def former_keys(
    old: Mapping[str, bool], old_address: str, new: Collection[str], new_address: str
) -> dict[str, str]:
    """By key of a unit that came: the key that it had where the card was before.

    ``old`` says of each unit whether it was missing; such a one is found again only at
    its own distance. Of the others, those that are left go by their order.
    """
    came = [key for key in new if key not in old]
    went = [key for key in old if key not in new]
    at = {_place(key, old_address): key for key in went}
    places = {key: _place(key, new_address) for key in came}
    found = {key: at[place] for key, place in places.items() if place in at}
    known = set(found.values())
    rest = [key for key in went if key not in known and not old[key]]
    others = [key for key in came if key not in found]
    pairs = zip(sorted(others, key=_natural), sorted(rest, key=_natural), strict=False)
    return found | dict(pairs)


def _place(key: str, address: str) -> Hashable:
    own, base = _ADDRESS.fullmatch(key), _ADDRESS.fullmatch(address)
    if own is None or base is None:
        return key
    return _number(own) - _number(base), own[5]


def _number(address: re.Match[str]) -> int:
    """The routing id, by which functions of a domain are counted."""
    _, bus, slot, function, _ = address.groups()
    return (int(bus, 16) << 8) + (int(slot, 16) << 3) + int(function)


def _natural(key: str) -> tuple[str, int, str]:
    """Addresses have a fixed width; a number behind them has none."""
    address, _, number = key.partition('/')
    return address, int(number) if number.isdecimal() else 0, number
