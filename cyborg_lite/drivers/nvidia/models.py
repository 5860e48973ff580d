# SPDX-License-Identifier: Apache-2.0
"""The known models of NVIDIA cards: names, memory, and NVSwitches.

The memory of a card is in no file. The tables of vGPU types in the documentation of
NVIDIA AI Enterprise give the size that vGPUs share.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class CardModel(NamedTuple):
    """A model of a card."""

    name: str
    memory: int | None = None  # GiB that vGPUs share; None: the kernel shows a maximum


# By PCI device id.
CARDS: Final[Mapping[str, CardModel]] = {
    '15f7': CardModel('Tesla P100 PCIe 12GB'),
    '1db4': CardModel('Tesla V100 PCIe 16GB'),
    '1db6': CardModel('Tesla V100 PCIe 32GB'),
    '1eb8': CardModel('Tesla T4', 16),
    '20b0': CardModel('A100 SXM4 40GB', 40),
    '20b2': CardModel('A100 SXM4 80GB', 80),
    '20b5': CardModel('A100 PCIe 80GB', 80),
    '20b7': CardModel('A30', 24),
    '20f1': CardModel('A100 PCIe 40GB', 40),
    '2230': CardModel('RTX A6000', 48),
    '2231': CardModel('RTX A5000', 24),
    '2233': CardModel('RTX A5500', 24),
    '2235': CardModel('A40', 48),
    '2236': CardModel('A10', 24),
    '2321': CardModel('H100 NVL', 94),
    '2322': CardModel('H800 PCIe', 80),
    '2324': CardModel('H800 SXM5', 80),
    '2329': CardModel('H20 SXM', 96),
    '2330': CardModel('H100 SXM5 80GB', 80),
    '2331': CardModel('H100 PCIe', 80),
    '2335': CardModel('H200 SXM 141GB', 141),
    '233b': CardModel('H200 NVL', 141),
    '25b6': CardModel('A2 or A16', 16),
    '26b1': CardModel('RTX 6000 Ada', 48),
    '26b5': CardModel('L40', 48),
    '26b9': CardModel('L40S', 48),
    '26ba': CardModel('L20', 48),
    '27b6': CardModel('L2', 24),
    '27b8': CardModel('L4', 24),
    '2901': CardModel('B200 SXM', 180),
    '2bb1': CardModel('RTX Pro 6000 Blackwell Workstation', 96),
    '2bb4': CardModel('RTX Pro 6000 Blackwell Max-Q', 96),
    '2bb5': CardModel('RTX Pro 6000 Blackwell Server', 96),
}

MODELS: Final[Mapping[str, str]] = {key: card.name for key, card in CARDS.items()}
MEMORY: Final[Mapping[str, int]] = {
    key: card.memory for key, card in CARDS.items() if card.memory is not None
}

# The NVSwitches of A100 boards, and of H100 and H200 boards.
NVSWITCHES: Final = ('1af1', '22a3')


# By the first two digits of the device id.
_ARCHITECTURES: Final[Mapping[str, str]] = {
    '15': 'pascal',
    '1b': 'pascal',
    '1d': 'volta',
    '1e': 'turing',
    '20': 'ampere',
    '22': 'ampere',
    '23': 'hopper',
    '25': 'ampere',
    '26': 'ada',
    '27': 'ada',
    '29': 'blackwell',
    '2b': 'blackwell',
}


def find_architecture(device: str) -> str | None:
    """Return the architecture of the card of a device id, or None for others."""
    return _ARCHITECTURES.get(device[:2]) if device in CARDS else None


def may_have_nvlink_fabric(device: str) -> bool:
    """Return True if a card with this device id can be behind NVSwitches.

    They connect cards of the form factor SXM. An unknown card may be one.
    """
    return device not in CARDS or 'SXM' in CARDS[device].name
