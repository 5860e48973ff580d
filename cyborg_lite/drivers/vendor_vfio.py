# SPDX-License-Identifier: Apache-2.0
"""vGPU types set on virtual functions, without mdevs: NVIDIA from kernel 6.8 on."""

import errno
from dataclasses import dataclass

from cyborg_lite.drivers import vfio
from cyborg_lite.drivers.kernel import Writer, refusal
from cyborg_lite.drivers.nvidia_carving import CURRENT_TYPE, NO_TYPE, KnownTypes
from cyborg_lite.drivers.nvidia_types import listed_types
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.exceptions import DeviceBusy, DeviceGone, DriverError


@dataclass(frozen=True, slots=True)
class Typed:
    """A virtual function as it shall be."""

    address: str
    label: str  # of its type
    card: str  # that manages it


class TypedFunctions:
    """Those of one driver's cards."""

    def __init__(self, host: Host, writer: Writer, types: KnownTypes) -> None:
        self._host = host
        self._writer = writer
        self._types = types
        self._written: dict[str, str] = {}  # number of the type, by function

    def set(self, wanted: Typed) -> None:
        """Give the function its type, unless it has it.

        :raises DeviceBusy: it has another one, or the card has no room for this one
        """
        function = PciFunction(self._host, wanted.address)
        current = self._current(function)
        if current is None:
            raise DeviceGone(address=wanted.address)
        if current != NO_TYPE:
            if not self._is_ours(wanted, current):
                reason = f'its vGPU type is {current} already'
                raise DeviceBusy(address=wanted.address, reason=reason)
            return
        number = self._creatable(function, wanted)
        self._write(wanted, number)
        self._written[wanted.address] = number
        if self._current(function) == NO_TYPE:
            raise DriverError(
                reason=f'Device {wanted.address}: vGPU type {wanted.label} was '
                'accepted and is not set.'
            )

    def is_set(self, wanted: Typed) -> bool:
        """Whether the function has any type."""
        current = self._current(PciFunction(self._host, wanted.address))
        return current not in (None, NO_TYPE)

    def clear(self, wanted: Typed) -> None:
        """Take the type away, if it is still the one that was set.

        :raises DeviceBusy: a guest has the function
        """
        function = PciFunction(self._host, wanted.address)
        current = self._current(function)
        if current in (None, NO_TYPE) or not self._is_ours(wanted, str(current)):
            return
        files = vfio.device_files(self._host, function.path('').rstrip('/'))
        holders = self._writer.holders(wanted.card, files)
        if holders:
            reason = f'it is open in process {holders[0]}'
            raise DeviceBusy(address=wanted.address, reason=reason)
        self._write(wanted, NO_TYPE)

    def _creatable(self, function: PciFunction, wanted: Typed) -> str:
        """The number of the type: it shrinks away from the list as siblings are set."""
        listed = listed_types(function)
        for each in listed:
            if each.label == wanted.label:
                return each.id
        names = ', '.join(each.name for each in listed) or 'nothing'
        reason = f'there is no room for {wanted.label}; it could be {names}'
        raise DeviceBusy(address=wanted.address, reason=reason)

    def _is_ours(self, wanted: Typed, current: str) -> bool:
        """A full card names no type: then the function's being ours must do.

        But never for another number than this process wrote.
        """
        if current != self._written.get(wanted.address, current):
            return False
        card = PciFunction(self._host, wanted.card)
        return self._types.label(card, current) in (None, wanted.label)

    def _write(self, wanted: Typed, text: str) -> None:
        path = f'sys/bus/pci/devices/{wanted.address}/{CURRENT_TYPE}'
        try:
            self._writer.write(wanted.card, path, text)
        except OSError as error:
            what = f'its vGPU type cannot be set to {text}'
            if error.errno in (errno.EINVAL, errno.EIO):
                raise DeviceBusy(
                    address=wanted.address, reason=f'{what}: {error.strerror}'
                ) from None
            raise refusal(wanted.address, what, error) from None

    def _current(self, function: PciFunction) -> str | None:
        return function.text(CURRENT_TYPE)
