# SPDX-License-Identifier: Apache-2.0
"""How many vGPUs of a type a card can hold: all of them, the existing ones included.

What the kernel calls available instances is the state of a moment, and reads 0 for
each other type as soon as one vGPU exists. It is no capacity.
"""

import math
import re
from typing import Final

from cyborg_lite.drivers.nvidia_carving import Carving, Way
from cyborg_lite.drivers.nvidia_types import VgpuType
from cyborg_lite.drivers.sysfs import Host

INFORMATION: Final = 'proc/driver/nvidia/gpus/{}/information'
_INSTANCES: Final = 'proc/driver/nvidia/capabilities/gpu{}/mig'
_INSTANCE: Final = re.compile(r'gi(\d+)')
_GIB: Final = 1024  # MiB


def information(host: Host, address: str, wanted: str) -> str | None:
    """What the vendor's driver says of a card that it holds."""
    for line in (host.text(INFORMATION.format(address)) or '').splitlines():
        key, _, value = line.partition(':')
        if key.strip() == wanted:
            return value.strip()
    return None


def gpu_instances(host: Host, address: str) -> tuple[int, ...]:
    """Ids of the GPU instances (MIG) that exist on a card."""
    minor = information(host, address, 'Device Minor')
    names = host.names(_INSTANCES.format(minor)) if minor else ()
    return tuple(
        int(found[1]) for name in names if (found := _INSTANCE.fullmatch(name))
    )


def capacity(
    found: Carving, each: VgpuType, memory: int | None, instances: tuple[int, ...]
) -> int:
    """The most vGPUs of a type that the card can have at once.

    :param memory: MiB of the card; None: not known
    :param instances: what ``gpu_instances`` found
    """
    most = None
    if each.on_instance:
        most = _of_instances(found, each, memory, instances)
    if most is None:
        most = each.most
    if most is None and memory and each.memory:
        most = memory // each.memory
    if most is None:
        most = _made(found, each) + each.available
    return most if found.way is Way.MDEV else min(most, len(found.enabled))


def card_memory(found: Carving, known: int | None) -> int | None:
    """MiB, by the table of models (in GiB) or else by the largest type there is."""
    if known is not None:
        return known * _GIB
    if found.way is Way.VENDOR_VFIO and found.existing:
        return None  # what is listed is what is left
    return max((each.memory or 0 for each in found.types), default=0) or None


def _of_instances(
    found: Carving, each: VgpuType, memory: int | None, instances: tuple[int, ...]
) -> int:
    """Each instance of its size carries one.

    Ids of instances are places in a binary tree: 0 is the whole card, 1 and 2 its
    halves, 3 to 6 the quarters, and so on. What shares a size (three and four slices
    of seven are both a half) is told apart by what can be made or has been made.
    """
    whole = memory or max((other.memory or 0 for other in found.types), default=0)
    if not each.memory or not _evident(found, each):
        return 0
    depth = _depth(whole, each.memory)
    places = sum(math.floor(math.log2(place + 1)) == depth for place in instances)
    rivals = {
        _profile(other)
        for other in found.types
        if other.on_instance
        and _depth(whole, other.memory or whole) == depth
        and _evident(found, other)
    } - {_profile(each)}
    made = _made(found, each)
    counted = max(places - len(rivals), made if places else made + each.available)
    return counted if each.most is None else min(counted, each.most)


def _depth(whole: int, part: int) -> int:
    return round(math.log2(whole / part))


def _profile(each: VgpuType) -> str:
    """What GPU instance it needs: slices, memory, and extensions such as media."""
    return re.sub(r'[ABCQ](?=(ME)?$)', '', each.name)


def _made(found: Carving, each: VgpuType) -> int:
    return sum(vgpu.type_id == each.id for vgpu in found.existing)


def _evident(found: Carving, each: VgpuType) -> bool:
    return each.creatable or _made(found, each) > 0
