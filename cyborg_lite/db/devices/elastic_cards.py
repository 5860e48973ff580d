# SPDX-License-Identifier: Apache-2.0
"""Elastic cards: the slots that have units, and the places of the next units.

A handle that an ARQ owns, or whose unit is not clean, occupies its place. A claim locks
the row of the card first, so that no two claims choose overlapping places. A release
takes no lock of the card: a claim at the same time sees the place as occupied.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable, Device
from cyborg_lite.db.inventory.handles import HELD, needs_cleaning
from cyborg_lite.db.profiles.selectors import read_attribute
from cyborg_lite.errors.arqs import NoFreeHandle, UnitsBeingCleaned
from cyborg_lite.model.capacity.carving import FULL, Size, choose_starts
from cyborg_lite.model.inventory import attribute_keys

PLACES: Final = read_attribute(attribute_keys.PLACES).label('places')
"""SQL for the places of the units of a deployable; NULL: its card is not elastic."""

_LOCK: Final = (
    select(Device.id)
    .where(Device.id.in_(bindparam('cards')))
    .order_by(Device.id)
    .with_for_update()
)
_SIZES: Final = select(Deployable.device_id, PLACES).where(
    Deployable.device_id.in_(bindparam('cards')), PLACES.is_not(None)
)
_UNITS: Final = (
    select(
        Deployable.device_id,
        AttachHandle.place,
        PLACES,
        needs_cleaning().label('is_released'),
    )
    .join(Deployable, Deployable.id == AttachHandle.deployable_id)
    .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
    .where(Deployable.device_id.in_(bindparam('cards')), HELD)
)


@dataclass(frozen=True, slots=True)
class ElasticTarget:
    """An ARQ, and the deployable of which it gets a unit."""

    arq_uuid: str
    rp_uuid: str
    name: str  # of the deployable; it contains the size
    device_id: int
    places: str | None  # None: the card is not elastic


# Any: rows with the columns rp_uuid, Deployable.device_id and PLACES.
def count_fitting(session: Session, rows: Iterable[Any]) -> dict[str, int]:
    """Return how many further units of each size fit, by uuid of the provider.

    It runs a SELECT if there is an elastic card.

    :returns: without the providers of other cards
    """
    elastic = [row for row in rows if row.places is not None]
    if not elastic:
        return {}
    used = _list_used(_list_units(session, {row.device_id for row in elastic}))
    sizes = {row.rp_uuid: Size.parse(row.places) for row in elastic}
    return {
        row.rp_uuid: size.count_fitting(used[row.device_id])
        if (size := sizes[row.rp_uuid])
        else 0
        for row in elastic
    }


def lock_cards(session: Session, targets: Iterable[ElasticTarget]) -> None:
    """Lock the elastic cards of targets, until the transaction ends."""
    cards = {target.device_id for target in targets if target.places is not None}
    if cards:
        session.execute(_LOCK, {'cards': sorted(cards)}).all()


def choose_places(
    session: Session, targets: Sequence[ElasticTarget]
) -> dict[str, int | None]:
    """Return the first slot of the unit of each ARQ; None: its card is not elastic.

    The caller has locked the cards.

    :returns: by uuid of the ARQ
    :raises NoFreeHandle: the units do not fit beside those in use
    :raises UnitsBeingCleaned: the units fit once hosts have released other units
    """
    places: dict[str, int | None] = {target.arq_uuid: None for target in targets}
    by_card: dict[int, list[ElasticTarget]] = defaultdict(list)
    for target in targets:
        if target.places is not None:
            by_card[target.device_id].append(target)
    if not by_card:
        return places
    units = _list_units(session, by_card)
    used = _list_used(units)
    card_sizes: dict[int, list[Size]] = defaultdict(list)
    for row in session.execute(_SIZES, {'cards': list(by_card)}):
        if size := Size.parse(row.places):
            card_sizes[row.device_id].append(size)
    for card, members in by_card.items():
        requested = _parse_sizes(members)
        starts = choose_starts(requested, used[card], card_sizes[card])
        if starts is None:
            _raise_no_room(
                members, requested, [u for u in units if u.device_id == card]
            )
        places.update(zip((item.arq_uuid for item in members), starts, strict=True))
    return places


def _parse_sizes(targets: Sequence[ElasticTarget]) -> list[Size]:
    """Return the size of each target."""
    sizes = []
    for target in targets:
        size = Size.parse(target.places or '')
        if size is None:
            reason = f'The host does not report valid places of {target.name}.'
            raise NoFreeHandle(reason=reason)
        sizes.append(size)
    return sizes


# Any: the columns of _UNITS, here and below.
def _raise_no_room(
    targets: Sequence[ElasticTarget], requested: Sequence[Size], units: Sequence[Any]
) -> NoReturn:
    released = sum(bool(unit.is_released) for unit in units)
    in_use = _list_used(unit for unit in units if not unit.is_released)
    if released and choose_starts(requested, in_use[targets[0].device_id], requested):
        raise UnitsBeingCleaned(number=released, provider=targets[0].rp_uuid)
    names = ' and '.join(dict.fromkeys(target.name for target in targets))
    number = len(targets)
    reason = f'{number} of {names} do not fit beside the units in use of the card.'
    raise NoFreeHandle(reason=reason)


def _list_units(session: Session, cards: Collection[int]) -> Sequence[Any]:
    return session.execute(_UNITS, {'cards': sorted(cards)}).all()


def _list_used(units: Iterable[Any]) -> Mapping[int, int]:
    """Return the occupied slots by id of the card.

    All slots are occupied if the place of a unit is not known.
    """
    used: defaultdict[int, int] = defaultdict(int)
    for unit in units:
        size = Size.parse(unit.places or '')
        is_known = size is not None and unit.place in size.starts
        used[unit.device_id] |= size.mask(unit.place) if size and is_known else FULL
    return used
