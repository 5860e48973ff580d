# SPDX-License-Identifier: Apache-2.0
"""The known models of NVIDIA cards, from ``cards.toml``, and NVSwitches.

The profiles of GPU instances (MIG) are those of the MIG user guide of NVIDIA.

The memory of a card is in no file.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final, NamedTuple

from cyborg_lite.model.capacity.carving import Size


class CardModel(NamedTuple):
    """A model of a card."""

    name: str
    memory: int | None = None  # GiB that vGPUs share; None: the kernel shows a maximum
    mig: Sequence[int] = ()  # GiB of the GPU instance profiles; empty: no MIG
    memory_slices: int = 0  # 0: eight with four profiles, else not known


_TABLES: Final = tomllib.loads(
    (resources.files(__package__) / 'cards.toml').read_text(encoding='utf-8')
)

# By PCI device id.
CARDS: Final[Mapping[str, CardModel]] = {
    key: CardModel(**fields) for key, fields in _TABLES['cards'].items()
}
MODELS: Final[Mapping[str, str]] = {key: card.name for key, card in CARDS.items()}
MEMORY: Final[Mapping[str, int]] = {
    key: card.memory for key, card in CARDS.items() if card.memory is not None
}

SLICES: Final = 7  # of a card
EIGHTHS: Final = 8  # of the memory of a card
# Slices and eighths of the memory of each profile: of cards with seven slices, for an
# eighth, a quarter, half and all of the memory; and of cards with four and two slices.
_SHAPES: Final = {
    4: ([(1, 1)], [(1, 2), (2, 2)], [(3, 4), (4, 4)], [(7, 8)]),
    3: ([(1, 2)], [(2, 4)], [(4, 8)]),
    2: ([(1, 4)], [(2, 8)]),
    0: (),
}


@dataclass(frozen=True, slots=True)
class Profile:
    """A GPU instance profile."""

    name: str  # such as 3g.20gb
    slices: int
    eighths: int  # of the memory of the card
    memory_slices: int = 0  # of the card; 0: the places are not known

    @property
    def depth(self) -> int:
        """The level of its places in the tree of GPU instances; 0: the whole card."""
        return (EIGHTHS // self.eighths).bit_length() - 1

    @property
    def maximum(self) -> int:
        """The number of instances that an empty card can have."""
        return min(EIGHTHS // self.eighths, SLICES // self.slices)

    @property
    def size(self) -> Size | None:
        """The memory slices at which an instance can begin; None: not known.

        The rule yields what ``nvidia-smi mig -lgipp`` lists for A30, A100 and H100.
        Slice and memory slice of the same number belong together.
        """
        length = self.eighths * self.memory_slices // EIGHTHS
        if not length:
            return None
        starts = range(0, self.memory_slices, length)
        return Size(tuple(s for s in starts if s + self.slices <= SLICES), length)


def sort_profiles(profiles: Iterable[Profile]) -> tuple[Profile, ...]:
    """Return the profiles, largest first."""
    return tuple(sorted(profiles, key=lambda item: (-item.eighths, -item.slices)))


def _build_profiles(card: CardModel) -> tuple[Profile, ...]:
    """Return the profiles of a card, largest first; empty: it has none."""
    memory_slices = card.memory_slices or (EIGHTHS if len(card.mig) == 4 else 0)
    return sort_profiles(
        Profile(f'{slices}g.{gib}gb', slices, eighths, memory_slices)
        for gib, profiles in zip(card.mig, _SHAPES[len(card.mig)], strict=True)
        for slices, eighths in profiles
    )


def find_instance_memory(device: str, slices: int) -> int:
    """Return the GiB of the GPU instances with a number of slices.

    Cards with up to four slices share a GPU instance among vGPUs of one type (NVIDIA AI
    Enterprise, Blackwell Architecture vGPU Types).

    :returns: 0 if one vGPU has the whole instance, or the card has no such instance
    """
    sizes = CARDS[device].mig if device in CARDS else ()
    if len(sizes) == 4:
        return 0
    groups = zip(sizes, _SHAPES[len(sizes)], strict=True)
    return next((gib for gib, shapes in groups if shapes[0][0] == slices), 0)


# By PCI device id.
PROFILES: Final = {key: _build_profiles(card) for key, card in CARDS.items()}

# The NVSwitches of A100 boards, and of H100 and H200 boards.
NVSWITCHES: Final = ('1af1', '22a3')


def find_architecture(device: str) -> str | None:
    """Return the architecture of the card of a device id, or None for others."""
    return _TABLES['architectures'].get(device[:2]) if device in CARDS else None


def may_have_nvlink_fabric(device: str) -> bool:
    """Return True if a card with this device id can be behind NVSwitches.

    They connect cards of the form factor SXM. An unknown card may be one.
    """
    return device not in CARDS or 'SXM' in CARDS[device].name
