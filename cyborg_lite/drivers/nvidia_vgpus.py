# SPDX-License-Identifier: Apache-2.0
"""vGPUs of NVIDIA cards made for handles, and unmade."""

from collections.abc import Callable
from typing import Final

from cyborg_lite.drivers.held import Held, unit_label
from cyborg_lite.drivers.kernel import Writer
from cyborg_lite.drivers.mdev import Mdevs, Wanted
from cyborg_lite.drivers.nvidia_carving import KnownTypes, carving
from cyborg_lite.drivers.nvml import Nvml
from cyborg_lite.drivers.pci import handle_address
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.drivers.vendor_vfio import Typed, TypedFunctions
from cyborg_lite.drivers.virtual_functions import SriovManage, VirtualFunctions
from cyborg_lite.exceptions import DeviceHangs, DriverError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import HandleType

Dispensable = Callable[[PciFunction], bool]

_TYPE: Final = 'asked_type'


class Vgpus:
    """Makes them one at a time for a card, as the agent sees to."""

    def __init__(
        self, host: Host, writer: Writer, held: Held, nvml: Nvml, types: KnownTypes
    ) -> None:
        self._host = host
        self._writer = writer
        self._held = held
        self._nvml = nvml
        self._mdevs = Mdevs(host, writer)
        self._typed = TypedFunctions(host, writer, types)
        self._virtual = VirtualFunctions(host, SriovManage(writer))

    def make(self, handle: HeldHandle, dispensable: Dispensable) -> None:
        """The vGPU of a handle, and the virtual functions of its card if it has none.

        ``dispensable`` tells whether a card is offered without virtual functions too.
        """
        self._writer.check(handle.address)
        # A look at the host meanwhile must not take it for a stranger's.
        self._held.add([handle])
        try:
            self._make(handle)
        except DeviceHangs:
            raise  # it may still come to be, and would be ours
        except DriverError:
            self._held.remove(handle.uuid)
            self._tidy(handle, dispensable)
            raise

    def unmake(self, handle: HeldHandle, dispensable: Dispensable) -> None:
        """Of a handle: nothing is left of it."""
        self._writer.check(handle.address)
        if handle.type == HandleType.MDEV:
            self._mdevs.remove(_mdev(handle))
        elif unit_label(handle.key):
            self._typed.clear(_typed(handle))
        self._held.remove(handle.uuid)
        self._tidy(handle, dispensable)

    def is_made(self, handle: HeldHandle) -> bool:
        """Whether the vGPU is there, and the function that it hangs on."""
        if handle.type == HandleType.MDEV:
            return self._mdevs.exists(_mdev(handle))
        place = PciFunction(self._host, handle_address(handle.info))
        typed = not unit_label(handle.key) or self._typed.is_set(_typed(handle))
        return place.present and typed

    def _make(self, handle: HeldHandle) -> None:
        place = handle_address(handle.info)
        if place != handle.address:
            # The library must be closed while the tool has the card.
            with self._nvml.closed():
                self._virtual.make(PciFunction(self._host, handle.address), place)
        if handle.type == HandleType.MDEV:
            self._mdevs.create(_mdev(handle))
        elif unit_label(handle.key):
            self._typed.set(_typed(handle))

    def _tidy(self, handle: HeldHandle, dispensable: Dispensable) -> None:
        card = PciFunction(self._host, handle.address)
        if carving(card).existing or not dispensable(card):
            return
        with self._nvml.closed():
            self._virtual.unmake(card)


def _mdev(handle: HeldHandle) -> Wanted:
    return Wanted(
        uuid=handle.uuid,
        type_id=handle.info.get(_TYPE, ''),
        parent=handle_address(handle.info),
        card=handle.address,
    )


def _typed(handle: HeldHandle) -> Typed:
    return Typed(
        handle_address(handle.info), unit_label(handle.key), card=handle.address
    )
