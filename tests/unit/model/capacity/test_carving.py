# SPDX-License-Identifier: Apache-2.0
"""Tests of the sizes of elastic cards, against the enumeration of all packings."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyborg_lite.model.capacity.carving import FULL, Size, choose_starts

# As `nvidia-smi mig -lgipp` shows them for an H100.
_PLACES = {
    '1g.5gb': '0,1,2,3,4,5,6:1',
    '1g.10gb': '0,2,4,6:2',
    '2g.10gb': '0,2,4:2',
    '3g.20gb': '0,4:4',
    '4g.20gb': '0:4',
    '7g.40gb': '0:8',
}


def _size(name: str) -> Size:
    size = Size.parse(_PLACES[name])
    assert size is not None
    return size


_SIZES = tuple(map(_size, _PLACES))


def _list_packings(requested: list[Size], used: int) -> list[tuple[int, ...]]:
    """Return all starts at which no unit overlaps another one."""
    packings = []
    for starts in product(*(size.starts for size in requested)):
        masks = [size.mask(at) for size, at in zip(requested, starts, strict=True)]
        slots = Counter(
            slot for mask in (used, *masks) for slot in range(16) if mask >> slot & 1
        )
        if all(number == 1 for number in slots.values()):
            packings.append(starts)
    return packings


def _count_by_enumeration(size: Size, used: int) -> int:
    number = 0
    while _list_packings([size] * (number + 1), used):
        number += 1
    return number


@given(st.sampled_from(_SIZES[1:]), st.integers(0, 255))
def test_count_fitting_equals_enumeration(size: Size, used: int) -> None:
    assert size.count_fitting(used) == _count_by_enumeration(size, used)


@settings(deadline=None)
@given(st.lists(st.sampled_from(_SIZES), min_size=1, max_size=3), st.integers(0, 255))
def test_choose_starts_is_best_packing(requested: list[Size], used: int) -> None:
    def rate(starts: tuple[int, ...]) -> tuple[int, int]:
        slots = used
        for size, start in zip(requested, starts, strict=True):
            slots |= size.mask(start)
        counts = [size.count_fitting(slots) for size in _SIZES]
        return sum(map(bool, counts)), sum(counts)

    packings = _list_packings(requested, used)
    chosen = choose_starts(requested, used, _SIZES)
    if not packings:
        assert chosen is None
        return
    assert chosen in packings
    assert rate(chosen) == max(map(rate, packings))


def test_count_fitting_empty_card_is_known_maximum() -> None:
    counts = {name: _size(name).count_fitting() for name in _PLACES}
    assert list(counts.values()) == [7, 4, 3, 2, 1, 1]


def test_small_units_do_not_fragment_card() -> None:
    """After a unit of 1g, a 4g and a 2g still fit; after two units, a 4g does."""
    (start,) = choose_starts([_size('1g.5gb')], 0, _SIZES) or (-1,)
    used = 1 << start
    assert choose_starts([_size('2g.10gb'), _size('4g.20gb')], used, _SIZES) == (4, 0)
    (start,) = choose_starts([_size('1g.5gb')], used, _SIZES) or (-1,)
    assert _size('4g.20gb').count_fitting(used | 1 << start) == 1


@pytest.mark.parametrize(
    'text', ['', '0', ':1', '0:', '0:0', '0,:1', '9:8', '-1:1', '0:1:2', '٣:1', '0:999']
)
def test_parse_malformed_places_is_refused(text: str) -> None:
    assert Size.parse(text) is None


def test_full_card_has_no_room() -> None:
    assert {size.count_fitting(FULL) for size in _SIZES} == {0}
