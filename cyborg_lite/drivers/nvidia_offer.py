# SPDX-License-Identifier: Apache-2.0
"""A card that is cut into vGPUs, as deployables and their units.

Keys of units say where a vGPU is or would be, and never how many there are now: they
stay the same whatever becomes of the card.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cyborg_lite.drivers.nvidia_carving import Carving, Vgpu, Way
from cyborg_lite.drivers.nvidia_choice import Choice
from cyborg_lite.drivers.nvidia_types import VgpuType
from cyborg_lite.drivers.pci import OWNER, attributes, custom_name, handle_info
from cyborg_lite.model.inventory import Deployable, HandleType, Unit

_CLASS: Final = 'VGPU'


@dataclass(frozen=True, slots=True)
class Card:
    """What is offered, and of what."""

    name: str  # of the root deployable
    address: str
    product: str  # device id, four hex digits
    found: Carving
    choice: Choice
    totals: Mapping[str, int]  # by label of type


def vgpus(card: Card) -> Deployable:
    """The root: one type is the card itself, GPU instances are parts of it."""
    types = card.choice.types
    if not any(each.on_instance for each in types):
        (only,) = types
        return _deployable(
            card, only, card.name, tuple(_places(card, only, frozenset()))
        )
    parts, taken = [], frozenset[str]()
    for each in types:
        places = tuple(_places(card, each, taken))
        parts.append(_deployable(card, each, f'{card.name}_{each.label}', places))
        taken |= frozenset(places)
    return Deployable(card.name, parts=tuple(parts))


def reserved_all(root: Deployable) -> Deployable:
    """With nothing left to give, and its capacity kept."""
    return replace(
        root,
        reserved=root.total,
        parts=tuple(reserved_all(part) for part in root.parts),
    )


def _places(card: Card, each: VgpuType, taken: frozenset[str]) -> Iterator[str]:
    """The functions that its units hang on, first to last.

    Types that run beside one another have ranges of functions of their own, laid out
    by all types of the card and not by those that are configured or made now.
    """
    total = card.totals[each.label]
    if card.found.way is Way.MDEV:
        yield from [card.address] * total
        return
    virtual = card.found.enabled
    before = 0
    if each.on_instance:
        smaller = (o for o in card.found.types if o.on_instance and o.id < each.id)
        before = sum(other.most or 0 for other in smaller)
    turned = [virtual[(before + n) % len(virtual)] for n in range(len(virtual))]
    free = [address for address in turned if address not in taken]
    yield from free[:total]


def _deployable(
    card: Card, each: VgpuType, name: str, places: tuple[str, ...]
) -> Deployable:
    strangers = [vgpu for vgpu in card.choice.strangers if _is_of(card, vgpu, each)]
    on_card = card.found.way is Way.MDEV
    # On a unit's own function a stranger blocks that unit; elsewhere any one of them.
    at_large = [v for v in strangers if on_card or v.address not in places]
    blocked = {vgpu.address for vgpu in card.choice.strangers}
    blocked |= set(card.found.unusable)
    traits = (OWNER, custom_name('NVIDIA', card.product, each.label))
    units = tuple(
        _unit(card.found.way, each, place, number)
        for number, place in enumerate(places)
    )
    if not (on_card or card.choice.closed):
        units = tuple(
            replace(unit, in_use=place in blocked)
            for unit, place in zip(units, places, strict=True)
        )
    total = len(places)
    return Deployable(
        name=name,
        resource_class=_CLASS,
        traits=traits,
        total=total,
        reserved=total if card.choice.closed else min(total, len(at_large)),
        units=units,
        attributes={**attributes(_CLASS, traits), 'vgpu_type': each.label},
    )


def _is_of(card: Card, vgpu: Vgpu, each: VgpuType) -> bool:
    """One that the card has no name for counts against every type."""
    known = card.found.type_of(vgpu)
    return known is None or known.label == each.label


def _unit(way: Way, each: VgpuType, place: str, number: int) -> Unit:
    info = handle_info(place)
    if way is Way.VENDOR_VFIO:
        # Bound to another driver, such a function stays broken until all of the card
        # are made anew: nobody may rebind it.
        key = f'{place}/{each.label}'
        return Unit(key, HandleType.PCI, info, needs_host=True, managed=False)
    key = f'{place}/{each.id}'
    if way is Way.MDEV:
        key = f'{key}/{number}'
    info |= {'asked_type': each.id, 'vgpu_mark': f'{each.id}_{number}'}
    return Unit(key, HandleType.MDEV, info, needs_host=True)


def total_of(deployable: Deployable, choice: Choice, existing: Sequence[Vgpu]) -> str:
    """For people: what is offered, in one line."""
    parts = [part for part in deployable.walk() if part.resource_class]
    offer = ', '.join(f'{part.attributes["vgpu_type"]} x{part.total}' for part in parts)
    text = f'vGPUs: {offer}; {len(existing)} exist'
    return f'{text}; {choice.reason}' if choice.reason else text
