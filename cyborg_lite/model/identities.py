# SPDX-License-Identifier: Apache-2.0
"""Which card is which: a serial number follows a card, an address stays in its slot.

Some cards have no serial number, and of some it can be read only while a certain
driver is bound. Such a card is known by its slot and by what it is, so that another
model in the same slot is another card.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cyborg_lite.model.inventory import Device
from cyborg_lite.model.inventory_facts import DeviceFacts, product

_LONGEST: Final = 128


def identified(
    known: Mapping[str, DeviceFacts], seen: Sequence[Device]
) -> dict[str, tuple[Device, str]]:
    """Each device under its identity, which is one of ``known`` if it is that card.

    With it the hardware id to keep: the best that was ever read.
    """
    found: dict[str, tuple[Device, str]] = {}
    strangers: list[tuple[Device, str | None]] = []
    for device, serial in _with_serials(seen):
        identity = serial or _of_slot(device)
        if identity in known:
            found[identity] = (device, identity)
        else:
            strangers.append((device, serial))
    for device, serial in strangers:
        same_card = _in_its_slot(known, found, device, serial)
        identity = serial or same_card or _of_slot(device)
        found[same_card or identity] = (device, identity)
    return found


def _with_serials(seen: Sequence[Device]) -> Iterator[tuple[Device, str | None]]:
    """None: it has none, or one that does not tell it from another card."""
    how_many = Counter(device.hardware_id for device in seen)
    for device in seen:
        own = device.hardware_id
        known_by_it = own not in ('', device.address) and how_many[own] == 1
        yield device, own if known_by_it else None


def _of_slot(card: Device | DeviceFacts) -> str:
    return f'{card.address} {product(card)}'[:_LONGEST]


def _in_its_slot(
    known: Mapping[str, DeviceFacts],
    found: Mapping[str, object],
    device: Device,
    serial: str | None,
) -> str | None:
    """The card that was in the slot, if nothing says that it is another one."""
    for identity, facts in known.items():
        both_have_serials = serial is not None and identity != _of_slot(facts)
        alike = facts.address == device.address and product(facts) == product(device)
        if alike and identity not in found and not both_have_serials:
            return identity
    return None
