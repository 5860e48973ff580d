# SPDX-License-Identifier: Apache-2.0
"""The capacity of a card: the number of vGPUs of a type, existing ones included.

``available_instances`` of the kernel is not the capacity. It depends on the current
state, and is 0 for all other types as soon as one vGPU exists.
"""

import math
import re
from collections.abc import Collection
from typing import Final

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.layout import Vgpu, VgpuLayout, VgpuMode, VgpuType

INFORMATION: Final = 'proc/driver/nvidia/gpus/{}/information'
_VERSION: Final = 'proc/driver/nvidia/version'
_NUMBERS: Final = re.compile(r'\bKernel Module\b.*?\s(\d{1,6}(?:\.\d{1,6}){1,3})\s')
_INSTANCES: Final = 'proc/driver/nvidia/capabilities/gpu{}/mig'
_INSTANCE: Final = re.compile(r'gi(\d+)')


def read_driver_information(host: Host, address: str, key: str) -> str | None:
    """Return a value that the vendor driver shows for a card bound to it, or None."""
    for line in (host.text(INFORMATION.format(address)) or '').splitlines():
        name, _, value = line.partition(':')
        if name.strip() == key:
            return value.strip()
    return None


def read_driver_version(host: Host) -> str | None:
    """Return the version of the loaded vendor driver, such as 570.124.03, or None."""
    match = _NUMBERS.search(f'{host.text(_VERSION) or ""} ')
    return match[1] if match else None


def list_gpu_instances(host: Host, address: str) -> tuple[int, ...]:
    """Return the ids of the GPU instances (MIG) of a card."""
    minor = read_driver_information(host, address, 'Device Minor')
    names = host.names(_INSTANCES.format(minor)) if minor else ()
    return tuple(
        int(match[1]) for name in names if (match := _INSTANCE.fullmatch(name))
    )


def count_capacity(
    layout: VgpuLayout,
    vgpu_type: VgpuType,
    memory: int | None,
    instances: tuple[int, ...],
) -> int:
    """Return the maximum number of vGPUs of a type that a card can have at once.

    :param memory: MiB of the card; None: unknown
    :param instances: the result of ``list_gpu_instances``
    """
    maximum = None
    if vgpu_type.uses_gpu_instance:
        maximum = _count_instances(layout, vgpu_type, memory, instances)
    if maximum is None:
        maximum = vgpu_type.max_per_card
    if maximum is None and memory and vgpu_type.memory:
        maximum = memory // vgpu_type.memory
    if maximum is None:
        existing = _count_possible(layout, vgpu_type, memory)
        maximum = existing + vgpu_type.available
    if layout.mode is VgpuMode.MDEV:
        return maximum
    return min(maximum, len(layout.enabled))


def may_have_type(
    layout: VgpuLayout, vgpu: Vgpu, vgpu_type: VgpuType, memory: int | None
) -> bool:
    """Return True if a vGPU has a type, or may have it because its type is unknown.

    The size of its GPU instance excludes types of other sizes.

    :param memory: MiB of the card; None: unknown
    """
    actual = layout.type_of(vgpu)
    if actual is not None:
        return actual.label == vgpu_type.label
    if vgpu.instance is None or not vgpu_type.uses_gpu_instance:
        return True
    if not vgpu_type.instance_memory:
        return True
    card_memory = memory or _largest_type(layout)
    depth = _tree_depth(card_memory, vgpu_type.instance_memory)
    return instance_depth(vgpu.instance) == depth


def _count_instances(
    layout: VgpuLayout,
    vgpu_type: VgpuType,
    memory: int | None,
    instances: tuple[int, ...],
) -> int:
    """Return the number of vGPUs that the GPU instances for a type can carry.

    The id of an instance is its position in a binary tree: 0 is the whole card, 1 and
    2 are the halves, 3 to 6 the quarters, and so on. Two profiles can have the same
    size: three and four slices of seven are both a half. In this case the types that
    exist or can be created show which profile the instances have.
    """
    card_memory = memory or _largest_type(layout)
    if not vgpu_type.instance_memory or not _is_possible(layout, vgpu_type):
        return 0
    depth = _tree_depth(card_memory, vgpu_type.instance_memory)
    places = {item for item in instances if instance_depth(item) == depth}
    if places and vgpu_type.per_instance > 1:
        return _count_shared(layout, vgpu_type, places)
    positions = len(places)
    rivals = {
        item.mig_profile
        for item in layout.types
        if item.uses_gpu_instance
        and _tree_depth(card_memory, item.instance_memory or card_memory) == depth
        and _is_possible(layout, item)
    } - {vgpu_type.mig_profile}
    existing = _count_possible(layout, vgpu_type, memory)
    count = max(
        positions - len(rivals),
        existing if positions else existing + vgpu_type.available,
    )
    maximum = vgpu_type.max_per_card
    return count if maximum is None else min(count, maximum)


def _largest_type(layout: VgpuLayout) -> int:
    return max((item.memory or 0 for item in layout.types), default=0)


def instance_depth(instance: int) -> int:
    """Return the level of a GPU instance in the tree of places; 0: the whole card."""
    return math.floor(math.log2(instance + 1))


def _tree_depth(card_memory: int, vgpu_memory: int) -> int:
    return round(math.log2(card_memory / vgpu_memory))


def _count_shared(
    layout: VgpuLayout, vgpu_type: VgpuType, places: Collection[int]
) -> int:
    """Return the number of vGPUs in GPU instances that vGPUs of one type share.

    A vGPU of another type, or of a type that nobody can name, takes its instance.
    """
    types = [(vgpu, layout.type_of(vgpu)) for vgpu in layout.existing]
    foreign_vgpus = [vgpu for vgpu, actual in types if actual != vgpu_type]
    held_places = {vgpu.instance for vgpu in foreign_vgpus}.intersection(places)
    unnamed_vgpus = [vgpu for vgpu in foreign_vgpus if layout.type_of(vgpu) is None]
    total = (len(places) - len(held_places)) * vgpu_type.per_instance
    return total + sum(vgpu.instance in places for vgpu in unnamed_vgpus)


def _count_possible(layout: VgpuLayout, vgpu_type: VgpuType, memory: int | None) -> int:
    """Return the number of vGPUs of a type, including those of an unknown type.

    The total must include those of an unknown type, because the offer subtracts them.
    """
    return sum(
        may_have_type(layout, vgpu, vgpu_type, memory) for vgpu in layout.existing
    )


def _is_possible(layout: VgpuLayout, vgpu_type: VgpuType) -> bool:
    existing = (vgpu.type_id for vgpu in layout.existing)
    return vgpu_type.is_creatable or vgpu_type.id in existing
