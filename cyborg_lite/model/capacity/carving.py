# SPDX-License-Identifier: Apache-2.0
"""The units of an elastic card: which sizes still fit, and where a unit is created.

An elastic card is a row of slots, such as the eight memory slices of a GPU in MIG mode.
A unit of a size takes consecutive slots, from one of the starts that the hardware
allows. Units in use never move. A set of slots is a bit mask; bit 0 is the first slot.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

MAX_SLOTS: Final = 16  # of a card; bounds the search

FULL: Final = (1 << MAX_SLOTS) - 1
"""All slots of any card."""


@dataclass(frozen=True, slots=True)
class Size:
    """A size of units, with the places of a card that can have one."""

    starts: tuple[int, ...]  # first slots, in ascending order
    length: int  # slots

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the size that ``str`` has written, such as ``0,4:4``.

        :returns: None: the text is malformed, or names a slot that no card has
        """
        words, _, length = text.partition(':')
        numbers = [*words.split(','), length]
        if not all(word.isascii() and word.isdigit() for word in numbers):
            return None
        if any(len(word) > 2 for word in numbers):
            return None
        starts = tuple(sorted({int(word) for word in words.split(',')}))
        size = cls(starts, int(length))
        is_valid = size.length > 0 and starts[-1] + size.length <= MAX_SLOTS
        return size if is_valid else None

    def __str__(self) -> str:
        return f'{",".join(map(str, self.starts))}:{self.length}'

    def mask(self, start: int) -> int:
        """Return the slots of a unit that begins at a slot."""
        return (1 << self.length) - 1 << start

    def list_free_starts(self, used: int) -> list[int]:
        """Return the starts of the units that fit beside the used slots."""
        return [start for start in self.starts if not self.mask(start) & used]

    def count_fitting(self, used: int = 0) -> int:
        """Return how many units fit at once beside the used slots.

        Units of one size are equally long: the lowest free start is always best.
        """
        number = 0
        for start in self.starts:
            if not self.mask(start) & used:
                used |= self.mask(start)
                number += 1
        return number


def choose_starts(
    requested: Sequence[Size], used: int, card_sizes: Sequence[Size]
) -> tuple[int, ...] | None:
    """Return the starts at which units are created together; None: they do not fit.

    All combinations are compared. The best one leaves room for the most sizes, then
    for the most units of all sizes, then for the longest ones. Of equal combinations
    the last one is chosen, as the drivers of NVIDIA do.

    :param requested: the size of each unit
    :param used: slots of the card that have units
    :param card_sizes: all sizes of the card
    """
    order = sorted(range(len(requested)), key=lambda index: -requested[index].length)
    sizes = sorted(set(card_sizes), key=lambda size: (-size.length, size.starts))
    combinations = _list_combinations([requested[index] for index in order], used)
    best = max(
        combinations,
        key=lambda item: (_rate(sizes, item[1]), item[0]),
        default=None,
    )
    if best is None:
        return None
    starts = dict(zip(order, best[0], strict=True))
    return tuple(starts[index] for index in range(len(requested)))


def _list_combinations(
    requested: Sequence[Size], used: int, lowest: int = 0
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the starts of the units, and the slots that are used with them.

    Units of the same size are interchangeable: their starts ascend.
    """
    if not requested:
        yield (), used
        return
    size, *further = requested
    for start in size.list_free_starts(used):
        if start >= lowest:
            is_same = bool(further) and further[0] == size
            combinations = _list_combinations(
                further, used | size.mask(start), start if is_same else 0
            )
            for starts, slots in combinations:
                yield (start, *starts), slots


def _rate(sizes: Sequence[Size], used: int) -> tuple[int, int, tuple[int, ...]]:
    """Return how good the remaining room is; a higher rate is better."""
    counts = tuple(size.count_fitting(used) for size in sizes)
    return sum(map(bool, counts)), sum(counts), counts
