# SPDX-License-Identifier: Apache-2.0
"""The vGPU layout of an NVIDIA card: its mode, vGPU types and existing vGPUs.

The vendor driver has provided vGPUs in three ways over time. The files in sysfs show
which one applies more reliably than models and versions do.
"""

import enum
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.virtual_functions import list_vf_addresses
from cyborg_lite.drivers.nvidia.models import MEMORY, find_instance_memory
from cyborg_lite.drivers.nvidia.sriov_manage import SRIOV_MANAGE
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.typed_attributes import TypedAttribute

MDEV_TYPES: Final = 'mdev_supported_types'
CREATABLE_TYPES: Final = 'nvidia/creatable_vgpu_types'
CURRENT_TYPE: Final = 'nvidia/current_vgpu_type'
NO_TYPE: Final = '0'  # in CURRENT_TYPE
_GPU_INSTANCE: Final = 'nvidia/gpu_instance_id'
_MAX_INSTANCES: Final = 9999  # of a type; a larger number is unknown
_MAX_GPU_INSTANCE: Final = 14  # ids of a tree of four levels; other numbers: none

_BRANDS: Final = ('GRID ', 'NVIDIA ')
# The end of a type name: slices of a GPU instance, if any; GiB of memory; the series.
_SIZE: Final = re.compile(r'[-_](?:(?P<slices>\d+)[-_])?(?P<memory>\d+)[A-Z][A-Z\d]*$')
_TYPE_LINE: Final = re.compile(r'\s*(\d+)\s*:\s*(\S.*)')
_GIB: Final = 1024  # MiB
_HALF_GIB: Final = 512  # MiB; type names call this size 0
# From this kernel version on the vendor driver provides vGPUs of VFs without mdevs.
_WITHOUT_MDEVS: Final = (6, 8)


@dataclass(frozen=True, slots=True)
class VgpuType:
    """A vGPU type of a card."""

    id: str  # `nvidia-231` with mdevs, a number without
    name: str  # such as `GRID T4-2Q`
    available: int  # vGPUs that can be created now; 1 may mean more
    max_per_card: int | None = None  # None: not shown by the kernel
    instance: int = 0  # GiB of the GPU instance that vGPUs share; 0: each has its own

    @property
    def is_creatable(self) -> bool:
        """The card can create a vGPU of this type now."""
        return self.available > 0

    @property
    def label(self) -> str:
        """The name in the form that a trait can contain, such as ``T4_2Q``."""
        return type_label(self.name)

    @property
    def memory(self) -> int | None:
        """MiB of card memory per vGPU; None if the name does not contain it."""
        match = _SIZE.search(self.name)
        return int(match['memory']) * _GIB or _HALF_GIB if match else None

    @property
    def slices(self) -> int:
        """The slices of its GPU instance; 0: a time-sliced type of the whole card."""
        match = _SIZE.search(self.name)
        return int(match['slices'] or 0) if match else 0

    @property
    def instance_memory(self) -> int | None:
        """MiB of the GPU instance of a vGPU; None if the name does not contain it."""
        return self.instance * _GIB or self.memory

    @property
    def per_instance(self) -> int:
        """The number of vGPUs that share one GPU instance."""
        return max((self.instance_memory or 0) // (self.memory or _GIB), 1)

    @property
    def mig_profile(self) -> str:
        """The GPU instance profile such as ``3g.20gb``; empty: a time-sliced type."""
        if not self.slices:
            return ''
        media = '+me' if self.name.endswith('ME') else ''
        return f'{self.slices}g.{(self.instance_memory or 0) // _GIB}gb{media}'

    @property
    def uses_gpu_instance(self) -> bool:
        """The type needs a GPU instance (MIG) per vGPU; other types are time-sliced."""
        return bool(self.slices)

    @property
    def typed_attributes(self) -> tuple[TypedAttribute, ...]:
        """The typed attributes of the vGPUs of this type."""
        values = [typed_attributes.VGPU_TYPE.of(self.label)]
        if self.memory is not None:
            values.append(typed_attributes.MEMORY.of(self.memory))
        if self.mig_profile:
            values.append(typed_attributes.MIG_PROFILE.of(self.mig_profile))
        return tuple(values)

    def matches(self, text: str) -> bool:
        """Return True if the text is the id, the number or the name of this type.

        The brand in front of the name is optional.
        """
        number = self.id.removeprefix('nvidia-')
        return text in (self.id, number) or type_label(text) == self.label


def type_label(name: str) -> str:
    """Return the label of a type name; an operator may omit the brand.

    >>> type_label('NVIDIA RTX Pro 6000 Blackwell DC-3Q')
    'RTX_PRO_6000_BLACKWELL_DC_3Q'
    """
    for brand in _BRANDS:
        name = name.removeprefix(brand)
    return re.sub('[^A-Z0-9]', '_', name.strip().upper())


def share_instances(device: str, types: Iterable[VgpuType]) -> tuple[VgpuType, ...]:
    """Return the types with the GPU instances that their vGPUs share.

    :param device: device id of the card
    """
    return tuple(
        replace(item, instance=find_instance_memory(device, item.slices))
        for item in types
    )


def list_mdev_types(function: PciFunction) -> tuple[VgpuType, ...]:
    """Return the mdev types that a function supports; empty without mdev support."""
    return tuple(_read_mdev_type(function, name) for name in function.names(MDEV_TYPES))


def list_creatable_types(function: PciFunction) -> tuple[VgpuType, ...]:
    """Return the types that can be set on a virtual function without mdevs now."""
    lines = (function.text(CREATABLE_TYPES) or '').splitlines()
    # The heading has another form, and so may lines of later driver versions.
    matches = filter(None, map(_TYPE_LINE.fullmatch, lines))
    return tuple(VgpuType(item[1], item[2].strip(), available=1) for item in matches)


def _read_mdev_type(function: PciFunction, type_id: str) -> VgpuType:
    directory = f'{MDEV_TYPES}/{type_id}'
    description = function.text(f'{directory}/description') or ''
    maximum = re.search(r'max_instance=(\d{1,4})\b', description)
    return VgpuType(
        id=type_id,
        name=function.text(f'{directory}/name') or type_id,
        available=function.number(f'{directory}/available_instances', _MAX_INSTANCES)
        or 0,
        max_per_card=int(maximum[1]) if maximum else None,
    )


class VgpuMode(enum.Enum):
    """The way in which a card provides vGPUs."""

    NONE = enum.auto()  # no vGPUs: no vGPU driver, or virtual functions are disabled
    MDEV = enum.auto()  # mdevs of the physical function: Pascal to Turing
    MDEV_OF_VIRTUAL = enum.auto()  # one mdev per virtual function: Ampere
    VENDOR_VFIO = enum.auto()  # a type set on each VF: Ada and later, kernel 6.8
    UNKNOWN = enum.auto()  # virtual functions without any vGPU files


@dataclass(frozen=True, slots=True)
class Vgpu:
    """An existing vGPU, created by this service or by another program."""

    address: str  # PCI address of its parent or of its virtual function
    type_id: str
    uuid: str | None = None  # None: it is not an mdev
    instance: int | None = None  # id of its GPU instance (MIG); None: not readable


@dataclass(frozen=True, slots=True)
class VgpuLayout:
    """The vGPUs of one card at the time of a scan."""

    mode: VgpuMode
    enabled: tuple[str, ...] = ()  # addresses of the existing virtual functions
    types: tuple[VgpuType, ...] = ()  # as listed by the card; may be incomplete
    existing: tuple[Vgpu, ...] = ()
    # Enabled virtual functions that cannot carry a vGPU: their files are unreadable,
    # or they are bound to another kernel driver.
    unusable: tuple[str, ...] = ()

    def __str__(self) -> str:
        used = len(self.existing)
        if self.mode is VgpuMode.MDEV:
            return f'divided into vGPUs: {used} mediated devices exist'
        in_use = f'{used} of {len(self.enabled)} virtual functions in use'
        return f'divided into vGPUs: {in_use}'

    @property
    def is_undivided(self) -> bool:
        """The card has neither vGPUs nor virtual functions."""
        return not self.existing and not self.enabled

    def find_type(self, text: str) -> VgpuType | None:
        """Return the type that an operator means by a text, or None."""
        return next((item for item in self.types if item.matches(text)), None)

    def type_of(self, vgpu: Vgpu) -> VgpuType | None:
        """Return the type of a vGPU, or None if the card does not list it."""
        return next((item for item in self.types if item.id == vgpu.type_id), None)


def read_layout(card: PciFunction) -> VgpuLayout:
    """Read the layout of a card.

    mdevs of the physical function are checked first: Turing cards have them although
    they support SR-IOV.

    :param card: a physical function
    """
    virtual = [PciFunction(card.host, address) for address in card.virtfns]
    if types := list_mdev_types(card):
        return VgpuLayout(VgpuMode.MDEV, card.virtfns, types, list_mdevs(card))
    if not virtual:
        return VgpuLayout(VgpuMode.NONE)
    return (
        _read_mdev_layout(card, virtual)
        or _read_vfio_layout(card, virtual)
        or VgpuLayout(VgpuMode.UNKNOWN, card.virtfns)
    )


def _read_mdev_layout(
    card: PciFunction, virtual: Sequence[PciFunction]
) -> VgpuLayout | None:
    types_by_address = {
        function.address: list_mdev_types(function) for function in virtual
    }
    types = _merge_types(item for types in types_by_address.values() for item in types)
    if not types:
        return None
    return VgpuLayout(
        VgpuMode.MDEV_OF_VIRTUAL,
        card.virtfns,
        types,
        existing=tuple(vgpu for function in virtual for vgpu in list_mdevs(function)),
        unusable=tuple(
            address for address, types in types_by_address.items() if not types
        ),
    )


def _read_vfio_layout(
    card: PciFunction, virtual: Sequence[PciFunction]
) -> VgpuLayout | None:
    current = {function.address: function.text(CURRENT_TYPE) for function in virtual}
    if not any(current.values()):
        return None
    return VgpuLayout(
        VgpuMode.VENDOR_VFIO,
        card.virtfns,
        _merge_types(
            item for function in virtual for item in list_creatable_types(function)
        ),
        existing=tuple(
            Vgpu(address, type_id, instance=_read_instance(card.host, address))
            for address, type_id in current.items()
            if type_id is not None and type_id != NO_TYPE
        ),
        unusable=tuple(
            address for address, type_id in current.items() if type_id is None
        ),
    )


def _read_instance(host: Host, address: str) -> int | None:
    number = PciFunction(host, address).number(_GPU_INSTANCE)
    if number is None or not 0 <= number <= _MAX_GPU_INSTANCE:
        return None  # a time-sliced vGPU has -1
    return number


def plan_layout(card: PciFunction, configured: Sequence[str]) -> VgpuLayout | None:
    """Return the layout that a card will have once its virtual functions exist.

    The agent creates them on demand if exactly one type is configured by name: the
    name contains the size. The number of a type is unknown until then.

    :param configured: types as the operator writes them
    :returns: None if the layout cannot be predicted
    """
    vgpu_type = (
        VgpuType('', configured[0], available=1) if len(configured) == 1 else None
    )
    if vgpu_type is None or vgpu_type.memory is None or vgpu_type.uses_gpu_instance:
        return None
    if card.device not in MEMORY or not card.host.has(SRIOV_MANAGE):
        return None
    if _read_kernel_version(card.host) < _WITHOUT_MDEVS:
        return None
    addresses = list_vf_addresses(card, card.number('sriov_totalvfs') or 0)
    if not addresses:
        return None
    return VgpuLayout(VgpuMode.VENDOR_VFIO, addresses, (vgpu_type,))


class VgpuTypeCache:
    """Remembers all types that each card has listed, and the largest one.

    A card lists only the types that it can still create, so the list shrinks.
    """

    def __init__(self) -> None:
        self._types: dict[str, dict[str, VgpuType]] = {}  # by address of card, by id
        # MiB, by address and device id: another model may replace a card.
        self._memory: dict[tuple[str, str], int] = {}

    def restore_memory(self, address: str, product: str, size: int) -> None:
        """Accept a number of MiB that vGPUs of a card could use in the past.

        :param product: device id of the card
        """
        size = max(size, self._memory.get((address, product), 0))
        self._memory[address, product] = size

    def find_memory(self, card: PciFunction) -> int | None:
        """Return the MiB of a card, from the table or its types; None: unknown."""
        largest = self._memory.get((card.address, card.device), 0)
        return max(MEMORY.get(card.device, 0) * _GIB, largest) or None

    def complete_types(
        self, card: PciFunction, layout: VgpuLayout, extra_types: Iterable[VgpuType]
    ) -> VgpuLayout:
        """Return the layout with the types that the card does not list any more.

        :param extra_types: types of the card known from another source
        """
        earlier = {item.id: item for item in extra_types} | self._types.get(
            card.address, {}
        )
        current = {item.id: replace(item, available=0) for item in layout.types}
        types = earlier | current
        self._types[card.address] = types
        self._record_memory(card, layout)
        if layout.mode is not VgpuMode.VENDOR_VFIO:
            return layout
        listed = {item.id: item for item in layout.types}
        return replace(layout, types=tuple((types | listed).values()))

    def find_label(self, card: PciFunction, type_id: str) -> str | None:
        """Return the label of a type id, or None if the card has never listed it."""
        listed = {item.id: item for item in read_layout(card).types}
        types = self._types.get(card.address, {}) | listed
        return types[type_id].label if type_id in types else None

    def remove_absent(self, present: Container[str]) -> None:
        """Remove the types of all cards but those at the given addresses.

        A removed card may be replaced by another one at the same address.
        """
        self._types = {card: t for card, t in self._types.items() if card in present}
        memory = self._memory.items()
        self._memory = {key: size for key, size in memory if key[0] in present}

    def _record_memory(self, card: PciFunction, layout: VgpuLayout) -> None:
        """Record the size of the largest type while the card lists all its types.

        The largest type of an empty card has the whole memory. GPU instances (MIG)
        without mdevs are an exception: the card lists only types for them.
        """
        types = layout.types
        if layout.mode is VgpuMode.VENDOR_VFIO:
            if layout.existing:
                return
            types = tuple(item for item in types if not item.uses_gpu_instance)
        largest = max((item.memory or 0 for item in types), default=0)
        self.restore_memory(card.address, card.device, largest)


def _read_kernel_version(host: Host) -> tuple[int, ...]:
    """Return major and minor version of the running kernel; empty if unreadable."""
    text = host.text('proc/sys/kernel/osrelease') or ''
    numbers = re.match(r'(\d+)\.(\d+)', text)
    return tuple(map(int, numbers.groups())) if numbers else ()


def list_mdevs(parent: PciFunction) -> tuple[Vgpu, ...]:
    """Return all mdevs of a function."""
    return tuple(
        Vgpu(parent.address, type_id, uuid)
        for type_id in parent.names(MDEV_TYPES)
        for uuid in parent.names(f'{MDEV_TYPES}/{type_id}/devices')
    )


def _merge_types(types: Iterable[VgpuType]) -> tuple[VgpuType, ...]:
    """Return one type per id, creatable if any function can still create it."""
    merged: dict[str, VgpuType] = {}
    for vgpu_type in types:
        if vgpu_type.id not in merged or vgpu_type.is_creatable:
            merged[vgpu_type.id] = vgpu_type
    return tuple(merged[type_id] for type_id in sorted(merged))
