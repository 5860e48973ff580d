# SPDX-License-Identifier: Apache-2.0
"""Elastic cards: GPU instances (MIG) that exist as long as a vGPU uses them.

The conductor chooses the place of each instance on the card, so that no two overlap.
The profiles of an elastic card are those of its configured vGPU types.
"""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Final

from cyborg_lite.drivers.host.kernel import Writer, last_line
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.capacity import list_gpu_instances
from cyborg_lite.drivers.nvidia.layout import read_layout
from cyborg_lite.drivers.nvidia.selection import is_own
from cyborg_lite.drivers.prepared_handles import PreparedHandles
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.capacity.carving import Size
from cyborg_lite.model.devices.devices import AllocatedHandle

NVIDIA_SMI: Final = 'usr/bin/nvidia-smi'  # below the root of the host

# A line of `nvidia-smi mig -lgi`: profile, id of the instance, first slice and length.
_LINE: Final = re.compile(
    r'\|\s*\d+\s+MIG (\S+)\s+\d+\s+(\d{1,3})\s+(\d{1,2}):(\d{1,2})\s*\|'
)


@dataclass(frozen=True, slots=True)
class GpuInstance:
    """A GPU instance of a card."""

    profile: str  # such as 3g.20gb
    start: int  # first memory slice
    length: int
    id: int = field(default=-1, compare=False)

    def overlaps(self, start: int, length: int) -> bool:
        """Return True if the instance has one of some consecutive slices."""
        return self.start < start + length and start < self.start + self.length


class ElasticCards:
    """The elastic cards of a host."""

    def __init__(self, prepared: PreparedHandles) -> None:
        self._prepared = prepared
        self._addresses: set[str] = set()

    def add(self, address: str) -> None:
        """Make a card elastic."""
        self._addresses.add(address)

    def remove(self, address: str) -> None:
        """Make a card fixed."""
        self._addresses.discard(address)

    def keep(self, present: Container[str]) -> None:
        """Remove all cards but those at the given addresses."""
        self._addresses = {item for item in self._addresses if item in present}

    def has(self, address: str) -> bool:
        """Return True if a card is elastic.

        A handle with a place shows it to an agent that has just started.
        """
        if self._prepared.list_placed(address):
            self._addresses.add(address)
        return address in self._addresses


class Carver:
    """Creates and destroys single GPU instances with ``nvidia-smi``."""

    def __init__(self, host: Host, writer: Writer, prepared: PreparedHandles) -> None:
        self._host = host
        self._writer = writer
        self._prepared = prepared

    def carve(self, handle: AllocatedHandle, profile: str, size: Size) -> None:
        """Create the GPU instance of a handle at its place, unless it exists.

        Instances that no vGPU can use are destroyed: an interrupted change has left
        them. So the new instance is the only free one, and the vGPU gets it.

        :raises DeviceBusy: the place is in use, or the tool refuses
        :raises DriverError: the size has no such place, the instances of the card
            cannot be read, or the tool has created the instance elsewhere
        """
        card, start, length = handle.control_address, handle.place, size.length
        if start is None or start not in size.starts:
            reason = f'Unit {handle.key} has no valid place on card {card}.'
            raise DriverError(reason=reason)
        instances = self._list_instances(card)
        if not instances:
            # MIG mode may be off after a reboot of the host.
            self._run(card, '-i', card, '-mig', '1')
        own = GpuInstance(profile, start, length)
        self._destroy_unused(handle, own, instances)
        if own in instances:
            return
        self._run(card, 'mig', '-i', card, '-cgi', f'{profile}:{start}')
        if own not in self._list_instances(card):
            reason = f'Device {card}: {profile} was not created at slice {start}.'
            raise DriverError(reason=reason)

    def remove(self, handle: AllocatedHandle, profile: str) -> None:
        """Destroy the GPU instance of a handle, if it exists.

        :raises DeviceBusy: it is in use
        :raises DriverError: the instances of the card cannot be read
        """
        card = handle.control_address
        own = [
            instance
            for instance in self._list_instances(card)
            if (instance.profile, instance.start) == (profile, handle.place)
        ]
        self._destroy(card, own)

    def _destroy_unused(
        self,
        handle: AllocatedHandle,
        own: GpuInstance,
        instances: Iterable[GpuInstance],
    ) -> None:
        """Destroy the GPU instances that belong to no handle.

        :param own: the instance of the handle, which stays
        :raises DeviceBusy: an instance of another handle is in the place of ``own``
        """
        card = handle.control_address
        users = {
            item.place: item
            for item in self._prepared.list_placed(card)
            if item.uuid != handle.uuid
        }
        unused = []
        for instance in instances:
            if instance.start not in users:
                unused += [instance] if instance != own else []
            elif instance.overlaps(own.start, own.length):
                user = users[instance.start].arq_uuid
                reason = f'ARQ {user} uses memory slice {instance.start}'
                raise DeviceBusy(address=card, reason=reason)
        if unused:
            # vGPUs of another program may use any GPU instance.
            existing = read_layout(PciFunction(self._host, card)).existing
            if not all(is_own(vgpu, self._prepared) for vgpu in existing):
                reason = 'vGPUs of another program may use its GPU instances'
                raise DeviceBusy(address=card, reason=reason)
            self._destroy(card, unused)

    def _destroy(self, card: str, instances: Iterable[GpuInstance]) -> None:
        for instance in instances:
            target = ('mig', '-i', card, '-gi', str(instance.id))
            # This fails if there is no compute instance, as on most hosts.
            self._writer.run(card, NVIDIA_SMI, *target, '-dci')
            self._run(card, *target, '-dgi')

    def _list_instances(self, card: str) -> list[GpuInstance]:
        """Return the GPU instances of a card.

        :raises DriverError: the tool shows other instances than the kernel
        """
        ids = sorted(list_gpu_instances(self._host, card))
        if not ids:
            return []
        status, output = self._writer.run(card, NVIDIA_SMI, 'mig', '-i', card, '-lgi')
        instances = [
            GpuInstance(match[1], int(match[3]), int(match[4]), int(match[2]))
            for match in _LINE.finditer(output)
        ]
        if status or sorted(item.id for item in instances) != ids:
            reason = f'{last_line(output)}; the kernel shows {ids}'
            reason = f'Device {card}: its GPU instances cannot be read: {reason}.'
            raise DriverError(reason=reason)
        return instances

    def _run(self, card: str, *arguments: str) -> None:
        self._writer.run_or_raise(card, NVIDIA_SMI, *arguments)
