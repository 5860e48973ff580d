# SPDX-License-Identifier: Apache-2.0
"""Creation and removal of the vGPUs of NVIDIA cards for attach handles."""

import errno
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers.host import vfio
from cyborg_lite.drivers.host.kernel import PCI_DEVICES, Writer, to_driver_error
from cyborg_lite.drivers.host.mdev import Mdevs, MdevSpec
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.virtual_functions import VirtualFunctions
from cyborg_lite.drivers.nvidia.carving import Carver
from cyborg_lite.drivers.nvidia.layout import (
    CURRENT_TYPE,
    NO_TYPE,
    VgpuTypeCache,
    list_creatable_types,
    plan_layout,
    read_layout,
)
from cyborg_lite.drivers.nvidia.nvml import Nvml
from cyborg_lite.drivers.nvidia.offer import VgpuOffer
from cyborg_lite.drivers.nvidia.selection import vgpu_type_label
from cyborg_lite.drivers.nvidia.sriov_manage import SriovManage
from cyborg_lite.drivers.pci.function_groups import FunctionGroups
from cyborg_lite.drivers.pci.functions import handle_address
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DeviceHangs, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import HandleType

_TYPE: Final = 'asked_type'


@dataclass(frozen=True, slots=True)
class VgpuFunction:
    """A virtual function and the vGPU type that it has or gets."""

    address: str
    label: str  # of the type
    card: str  # address of the physical function


class VgpuFunctions:
    """Sets vGPU types on virtual functions without mdevs (kernel 6.8 and later)."""

    def __init__(self, host: Host, writer: Writer, types: VgpuTypeCache) -> None:
        self._host = host
        self._writer = writer
        self._types = types
        self._written: dict[str, str] = {}  # number of the type, by address

    def set_type(self, target: VgpuFunction) -> None:
        """Set the type of a virtual function, unless it is set.

        :raises DeviceBusy: the function has another type, or the card has no room
        :raises DriverError: the kernel accepted the type without effect
        """
        function = PciFunction(self._host, target.address)
        current = function.text(CURRENT_TYPE)
        if current is None:
            raise DeviceGone(address=target.address)
        if current != NO_TYPE:
            if not self._is_expected(target, current):
                reason = f'its vGPU type is {current} already'
                raise DeviceBusy(address=target.address, reason=reason)
            return
        number = self._find_number(function, target)
        self._write(target, number)
        self._written[target.address] = number
        if function.text(CURRENT_TYPE) == NO_TYPE:
            raise DriverError(
                reason=f'Device {target.address}: the kernel accepted vGPU type '
                f'{target.label}, but the type is not set.'
            )

    def has_type(self, target: VgpuFunction) -> bool:
        """Return True if any type is set on the virtual function."""
        function = PciFunction(self._host, target.address)
        return function.text(CURRENT_TYPE) not in (None, NO_TYPE)

    def clear_type(self, target: VgpuFunction) -> None:
        """Clear the type of a virtual function, unless another program has set it.

        :raises DeviceBusy: a guest has the function open
        """
        function = PciFunction(self._host, target.address)
        current = function.text(CURRENT_TYPE)
        if current is None or current == NO_TYPE:
            return
        if not self._is_expected(target, current):
            return
        vfio.check_closed(self._writer, function, target.card)
        self._write(target, NO_TYPE)

    def _find_number(self, function: PciFunction, target: VgpuFunction) -> str:
        """Return the number of a type that the card can still create.

        :raises DeviceBusy: the card does not list the type; the list shrinks as types
            are set on other functions
        """
        listed = list_creatable_types(function)
        for vgpu_type in listed:
            if vgpu_type.label == target.label:
                return vgpu_type.id
        names = ', '.join(vgpu_type.name for vgpu_type in listed) or 'none'
        reason = f'there is no room for {target.label}; possible types: {names}'
        raise DeviceBusy(address=target.address, reason=reason)

    def _is_expected(self, target: VgpuFunction, current: str) -> bool:
        """Return True if the current type can be the one of the target.

        A full card lists no types. Then the type is assumed to be the expected one,
        unless this process has written another number.
        """
        if current != self._written.get(target.address, current):
            return False
        card = PciFunction(self._host, target.card)
        return self._types.find_label(card, current) in (None, target.label)

    def _write(self, target: VgpuFunction, text: str) -> None:
        path = f'{PCI_DEVICES}/{target.address}/{CURRENT_TYPE}'
        try:
            self._writer.write(target.card, path, text)
        except OSError as error:
            action = f'its vGPU type cannot be set to {text}'
            if error.errno in (errno.EINVAL, errno.EIO):
                raise DeviceBusy(
                    address=target.address, reason=f'{action}: {error.strerror}'
                ) from None
            raise to_driver_error(target.address, action, error) from None


class VgpuHandles:
    """Creates and removes the vGPUs of handles, one handle of a card at a time."""

    def __init__(
        self,
        offer: VgpuOffer,
        groups: FunctionGroups,
        writer: Writer,
        nvml: Nvml,
        *,
        creates_mdevs: bool,
    ) -> None:
        self._offer = offer
        self._groups = groups  # whole cards, which need no preparation
        self._prepared = offer.prepared
        self._writer = writer
        self._nvml = nvml
        self._creates_mdevs = creates_mdevs  # False: Nova creates the mdevs of guests
        self._mdevs = Mdevs(offer.host, writer)
        self._functions = VgpuFunctions(offer.host, writer, offer.types)
        self._carver = Carver(offer.host, writer, offer.prepared)
        self._virtual = VirtualFunctions(offer.host, SriovManage(writer))

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        self._prepared.add(handles)

    def prepare(self, handle: AllocatedHandle) -> None:
        """Create the vGPU of a handle, and the virtual functions of its card if needed.

        :raises DeviceHangs: a change did not return; the vGPU may still be created
        :raises DriverError: it failed, and nothing is left
        """
        if self._groups.find_group(handle):
            return
        self._writer.check(handle.control_address)
        # Before the change: a concurrent scan must not report the vGPU as foreign.
        self._prepared.add([handle])
        try:
            self._create(handle)
        except DeviceHangs:
            raise  # the change may still succeed: keep the handle
        except DriverError:
            self._prepared.remove(handle.uuid)
            with suppress(DriverError):  # the next instance in its place replaces it
                self._remove_instance(handle)
            self._remove_virtual_functions(handle)
            raise

    def release(self, handle: AllocatedHandle) -> None:
        """Remove the vGPU of a handle, and unused virtual functions of its card.

        :raises DriverError: it cannot be removed now
        """
        if self._groups.find_group(handle):
            return
        self._writer.check(handle.control_address)
        if handle.type == HandleType.MDEV:
            # First: nothing can create the mdev again after its removal.
            self._mdevs.remove_definition(_mdev_spec(handle))
            self._mdevs.remove(_mdev_spec(handle))
        elif vgpu_type_label(handle.key):
            self._functions.clear_type(_vgpu_function(handle))
        self._remove_instance(handle)
        self._prepared.remove(handle.uuid)
        self._remove_virtual_functions(handle)

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        """Return True if the vGPU of a handle and its PCI function exist.

        If Nova creates the mdev, only its PCI function must exist.
        """
        if self._groups.find_group(handle):
            return True
        leaves_mdev = self._leaves_mdev(handle)
        if handle.type == HandleType.MDEV and not leaves_mdev:
            return self._mdevs.exists(_mdev_spec(handle))
        function = PciFunction(self._offer.host, handle_address(handle.info))
        return function.is_present and (
            leaves_mdev
            or not vgpu_type_label(handle.key)
            or self._functions.has_type(_vgpu_function(handle))
        )

    def _create(self, handle: AllocatedHandle) -> None:
        address = handle_address(handle.info)
        if address != handle.control_address:
            # sriov-manage fails while the management library is open.
            with self._nvml.keep_closed():
                card = PciFunction(self._offer.host, handle.control_address)
                self._virtual.create(card, address)
        if handle.place is not None or self._offer.elastic.has(handle.control_address):
            self._carve(handle)
        if handle.type == HandleType.MDEV:
            if self._leaves_mdev(handle):
                return
            try:
                self._mdevs.create(_mdev_spec(handle))
            finally:
                # Also after a failure: nova-compute does not start if it cannot
                # create a defined mdev.
                self._mdevs.remove_definition(_mdev_spec(handle))
        elif vgpu_type_label(handle.key):
            self._functions.set_type(_vgpu_function(handle))

    def _carve(self, handle: AllocatedHandle) -> None:
        """Create the GPU instance of a handle of an elastic card."""
        profile = self._offer.find_profile(handle)
        if profile is None or profile.size is None:
            reason = f'No GPU instance is known for unit {handle.key}.'
            raise DriverError(reason=reason)
        with self._nvml.keep_closed():
            self._carver.carve(handle, profile.name, profile.size)

    def _remove_instance(self, handle: AllocatedHandle) -> None:
        """Destroy the GPU instance of a handle of an elastic card.

        :raises DriverError: it cannot be destroyed now
        """
        if handle.place is None:
            return
        profile = self._offer.find_profile(handle)
        if profile is None:
            reason = f'The GPU instance of unit {handle.key} is not known.'
            raise DriverError(reason=reason)
        with self._nvml.keep_closed():
            self._carver.remove(handle, profile.name)

    def _leaves_mdev(self, handle: AllocatedHandle) -> bool:
        is_mdev = handle.type == HandleType.MDEV
        return not self._creates_mdevs and is_mdev and handle.for_guest

    def _remove_virtual_functions(self, handle: AllocatedHandle) -> None:
        card = PciFunction(self._offer.host, handle.control_address)
        planned = plan_layout(card, self._offer.find_configured(card))
        # The card must offer the same without its virtual functions.
        if read_layout(card).existing or planned is None:
            return
        with self._nvml.keep_closed():
            self._virtual.remove(card)


def _mdev_spec(handle: AllocatedHandle) -> MdevSpec:
    return MdevSpec(
        uuid=handle.uuid,
        type_id=handle.info.get(_TYPE, ''),
        parent=handle_address(handle.info),
        card=handle.control_address,
    )


def _vgpu_function(handle: AllocatedHandle) -> VgpuFunction:
    return VgpuFunction(
        handle_address(handle.info),
        vgpu_type_label(handle.key),
        card=handle.control_address,
    )
