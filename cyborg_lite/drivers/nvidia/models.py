# SPDX-License-Identifier: Apache-2.0
"""The known models of NVIDIA cards, from ``cards.toml``, and NVSwitches.

The memory of a card is in no file.
"""

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final, NamedTuple


class CardModel(NamedTuple):
    """A model of a card."""

    name: str
    memory: int | None = None  # GiB that vGPUs share; None: the kernel shows a maximum
    mig: Sequence[int] = ()  # GiB of the GPU instance profiles; empty: no MIG


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
