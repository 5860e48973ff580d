# SPDX-License-Identifier: Apache-2.0
"""How an NVIDIA card is cut into vGPUs at this moment, told by looking.

Three generations of the vendor's driver do it in three ways, and models and versions
say less of which one it is than the files do.
"""

import enum
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cyborg_lite.drivers.nvidia_models import MEMORY
from cyborg_lite.drivers.nvidia_types import (
    MDEV_TYPES,
    VgpuType,
    listed_types,
    mdev_types,
)
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.drivers.virtual_functions import SRIOV_MANAGE, planned

CURRENT_TYPE: Final = 'nvidia/current_vgpu_type'
NO_TYPE: Final = '0'
# Since this kernel the vendor's driver makes vGPUs of virtual functions without mdevs.
_WITHOUT_MDEVS: Final = (6, 8)


class Way(enum.Enum):
    """Where the vGPUs of a card live."""

    NONE = enum.auto()  # it has none: no vGPU driver, or virtual functions are off
    MDEV = enum.auto()  # mdevs of the card itself: Pascal to Turing
    MDEV_OF_VIRTUAL = enum.auto()  # an mdev for each virtual function: Ampere
    VENDOR_VFIO = enum.auto()  # a type set on each: Ada and later, kernel 6.8
    UNKNOWN = enum.auto()  # virtual functions, and nothing to say what they are for


@dataclass(frozen=True, slots=True)
class Vgpu:
    """One that exists, whoever made it."""

    address: str  # of the function that it hangs on
    type_id: str
    uuid: str | None = None  # None: it is no mdev


@dataclass(frozen=True, slots=True)
class Carving:
    way: Way
    enabled: tuple[str, ...] = ()  # addresses of the virtual functions that exist
    types: tuple[VgpuType, ...] = ()  # that the card says it has; may be too few
    existing: tuple[Vgpu, ...] = ()
    # Of the enabled ones those that can carry none: they cannot be read, or somebody
    # bound them to another driver.
    unusable: tuple[str, ...] = ()

    def __str__(self) -> str:
        used = len(self.existing)
        if self.way is Way.MDEV:
            return f'carved into vGPUs: {used} mediated devices exist'
        in_use = f'{used} of {len(self.enabled)} virtual functions in use'
        return f'carved into vGPUs: {in_use}'

    @property
    def whole(self) -> bool:
        """Nothing of it exists: that it could be cut up does not count."""
        return not self.existing and not self.enabled

    def meant(self, wanted: str) -> VgpuType | None:
        """The type of the card that an operator calls so; None: it has no such."""
        return next((each for each in self.types if each.answers_to(wanted)), None)

    def type_of(self, vgpu: Vgpu) -> VgpuType | None:
        """None: the card does not say what type that is."""
        return next((each for each in self.types if each.id == vgpu.type_id), None)


def carving(card: PciFunction) -> Carving:
    """Of a physical function.

    The order of the questions matters: a Turing card has mdevs of its own although
    it could do SR-IOV.
    """
    virtual = [PciFunction(card.host, address) for address in card.virtfns]
    if types := mdev_types(card):
        return Carving(Way.MDEV, card.virtfns, types, created_mdevs(card))
    if not virtual:
        return Carving(Way.NONE)
    of_each = {function.address: mdev_types(function) for function in virtual}
    if types := _merged(each for listed in of_each.values() for each in listed):
        found = [vgpu for function in virtual for vgpu in created_mdevs(function)]
        bare = tuple(address for address, listed in of_each.items() if not listed)
        return Carving(Way.MDEV_OF_VIRTUAL, card.virtfns, types, tuple(found), bare)
    current = {each.address: each.text(CURRENT_TYPE) for each in virtual}
    if any(current.values()):
        types = _merged(each for function in virtual for each in listed_types(function))
        found = [
            Vgpu(address, type_id)
            for address, type_id in current.items()
            if type_id not in (None, NO_TYPE)
        ]
        silent = tuple(address for address, said in current.items() if said is None)
        return Carving(Way.VENDOR_VFIO, card.virtfns, types, tuple(found), silent)
    return Carving(Way.UNKNOWN, card.virtfns)


def planned_carving(card: PciFunction, wanted: Sequence[str]) -> Carving | None:
    """What a card will be once its virtual functions are made; None: who knows.

    They are made on demand where a type is wanted by its name: that tells its size,
    and the kernel how it is set. A number means nothing before they are there.
    """
    each = VgpuType('', wanted[0], available=1) if len(wanted) == 1 else None
    if each is None or each.memory is None or each.on_instance:
        return None
    if card.device not in MEMORY or not card.host.has(SRIOV_MANAGE):
        return None
    if _kernel(card.host) < _WITHOUT_MDEVS:
        return None
    places = planned(card, card.number('sriov_totalvfs') or 0)
    return Carving(Way.VENDOR_VFIO, places, (each,)) if places else None


class KnownTypes:
    """The types that each card ever listed: the list shrinks as vGPUs are made."""

    def __init__(self) -> None:
        self._types: dict[str, dict[str, VgpuType]] = {}  # by address of card, by id

    def completed(
        self, card: PciFunction, found: Carving, taught: Iterable[VgpuType]
    ) -> Carving:
        """With types that the card does not list now, as none that can be made.

        ``taught`` is what is known of it from elsewhere.
        """
        before = {each.id: each for each in taught} | self._types.get(card.address, {})
        seen = {each.id: replace(each, available=0) for each in found.types}
        known = before | seen
        self._types[card.address] = known
        if found.way is not Way.VENDOR_VFIO:
            return found
        listed = {each.id: each for each in found.types}
        return replace(found, types=tuple((known | listed).values()))

    def label(self, card: PciFunction, type_id: str) -> str | None:
        """What an id means on a card; None: it does not say, and never did."""
        listed = {each.id: each for each in carving(card).types}
        known = self._types.get(card.address, {}) | listed
        return known[type_id].label if type_id in known else None

    def forget(self, present: Container[str]) -> None:
        """All cards but those: what comes to their addresses is another one."""
        self._types = {card: t for card, t in self._types.items() if card in present}


def _kernel(host: Host) -> tuple[int, ...]:
    """Version of the running kernel, as far as it compares."""
    text = host.text('proc/sys/kernel/osrelease') or ''
    numbers = re.match(r'(\d+)\.(\d+)', text)
    return tuple(map(int, numbers.groups())) if numbers else ()


def created_mdevs(parent: PciFunction) -> tuple[Vgpu, ...]:
    """The mdevs of a function, whoever made them."""
    return tuple(
        Vgpu(parent.address, type_id, uuid)
        for type_id in parent.names(MDEV_TYPES)
        for uuid in parent.names(f'{MDEV_TYPES}/{type_id}/devices')
    )


def _merged(types: Iterable[VgpuType]) -> tuple[VgpuType, ...]:
    """One of each id; creatable where any function can still make it."""
    found: dict[str, VgpuType] = {}
    for each in types:
        if each.id not in found or each.creatable:
            found[each.id] = each
    return tuple(found[type_id] for type_id in sorted(found))
