# SPDX-License-Identifier: Apache-2.0
"""vGPU types as NVIDIA's driver writes them: ids, names, sizes.

The numbers of types belong to one card under one version of the driver. What names a
type for good is its name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers.sysfs import PciFunction

MDEV_TYPES: Final = 'mdev_supported_types'
CREATABLE: Final = 'nvidia/creatable_vgpu_types'

_BRANDS: Final = ('GRID ', 'NVIDIA ')
# At the end of a name: slices of a GPU instance, if any; GiB of memory; the series.
_SIZE: Final = re.compile(r'[-_](?:(?P<slices>\d+)[-_])?(?P<memory>\d+)[A-Z][A-Z\d]*$')
_LISTED: Final = re.compile(r'\s*(\d+)\s*:\s*(\S.*)')
_GIB: Final = 1024  # MiB
_HALF_GIB: Final = 512  # MiB: the size that names call 0


@dataclass(frozen=True, slots=True)
class VgpuType:
    """One way to make a vGPU of a card."""

    id: str  # `nvidia-231` with mdevs, a number without
    name: str  # `GRID T4-2Q`
    available: int  # can be made now where it was read; 1 may stand for more
    most: int | None = None  # on one card; None: the kernel does not say

    @property
    def creatable(self) -> bool:
        return self.available > 0

    @property
    def label(self) -> str:
        """The name as a part of a trait: ``T4_2Q``."""
        return label_of(self.name)

    @property
    def memory(self) -> int | None:
        """MiB of the card that one takes; None: the name does not tell."""
        found = _SIZE.search(self.name)
        return int(found['memory']) * _GIB or _HALF_GIB if found else None

    @property
    def on_instance(self) -> bool:
        """Whether it needs a GPU instance (MIG) of its own, instead of time slices."""
        found = _SIZE.search(self.name)
        return bool(found and found['slices'])

    def answers_to(self, wanted: str) -> bool:
        """Whether an operator means it: by id, number or name, with brand or not."""
        number = self.id.removeprefix('nvidia-')
        return wanted in (self.id, number) or label_of(wanted) == self.label


def label_of(name: str) -> str:
    """Of a type's name, or of what an operator calls it.

    >>> label_of('NVIDIA RTX Pro 6000 Blackwell DC-3Q')
    'RTX_PRO_6000_BLACKWELL_DC_3Q'
    """
    for brand in _BRANDS:
        name = name.removeprefix(brand)
    return re.sub('[^A-Z0-9]', '_', name.strip().upper())


def mdev_types(function: PciFunction) -> tuple[VgpuType, ...]:
    """What mdevs the function supports; nothing if it has none."""
    return tuple(_mdev_type(function, name) for name in function.names(MDEV_TYPES))


def listed_types(function: PciFunction) -> tuple[VgpuType, ...]:
    """What a virtual function without mdevs can still be made now."""
    return tuple(
        VgpuType(number, name, available=1)
        for number, name in _listed(function.text(CREATABLE) or '')
    )


def _mdev_type(function: PciFunction, type_id: str) -> VgpuType:
    where = f'{MDEV_TYPES}/{type_id}'
    description = function.text(f'{where}/description') or ''
    most = re.search(r'max_instance=(\d+)', description)
    return VgpuType(
        id=type_id,
        name=function.text(f'{where}/name') or type_id,
        available=function.number(f'{where}/available_instances') or 0,
        most=int(most[1]) if most else None,
    )


def _listed(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        # A heading, or a line of another form, is no type.
        if found := _LISTED.fullmatch(line):
            yield found[1], found[2].strip()
