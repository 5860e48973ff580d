# SPDX-License-Identifier: Apache-2.0
"""Mediated devices made and removed, as often as it takes.

The rules are those of ``drivers/vfio/mdev`` of the kernel: a uuid exists once on a
host, and a removal blocks, beyond any signal, while a guest has the device open.
"""

import errno
from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers import vfio
from cyborg_lite.drivers.kernel import Writer, refusal
from cyborg_lite.drivers.sysfs import Host, PciFunction, pci_address
from cyborg_lite.exceptions import DeviceBusy, DeviceGone, DriverError

_MDEVS: Final = 'sys/bus/mdev/devices'
_GONE: Final = (errno.ENOENT, errno.ENODEV)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An mdev as it shall be. ``card`` manages ``parent``, and may be the same."""

    uuid: str
    type_id: str
    parent: str
    card: str


class Mdevs:
    """Those of one driver's cards."""

    def __init__(self, host: Host, writer: Writer) -> None:
        self._host = host
        self._writer = writer

    def create(self, wanted: Wanted) -> None:
        """Make it, unless it is there already.

        :raises DeviceBusy: the parent cannot have it now
        :raises DriverError: it cannot be made, or the uuid is another mdev's
        """
        if self._exists(wanted):
            return
        parent = PciFunction(self._host, wanted.parent)
        create = parent.path(f'mdev_supported_types/{wanted.type_id}/create')
        if not self._host.has(create):
            raise DeviceGone(address=wanted.parent)
        try:
            self._writer.write(wanted.card, create, wanted.uuid)
        except OSError as error:
            # Another one, mdevctl perhaps, may have been faster with the same uuid.
            if error.errno == errno.EEXIST and self._exists(wanted):
                return
            what = f'no mdev of {wanted.type_id} can be made'
            if error.errno in (errno.EINVAL, errno.EIO, errno.EUSERS):
                # What vendors answer when none is left, or another type runs.
                raise DeviceBusy(
                    address=wanted.parent, reason=f'{what}: {error.strerror}'
                ) from None
            raise refusal(wanted.parent, what, error) from None
        if not self._exists(wanted):
            raise DriverError(
                reason=f'Device {wanted.parent}: mdev {wanted.uuid} was accepted and '
                'does not exist.'
            )

    def exists(self, wanted: Wanted) -> bool:
        """Whether there is this very one."""
        return self._is_it(wanted)

    def remove(self, wanted: Wanted) -> None:
        """Remove it; one that is not there, or is not this one any more, is done.

        :raises DeviceBusy: a guest has it
        """
        if self._type(wanted.uuid) is None or not self._is_it(wanted):
            return
        directory = f'{_MDEVS}/{wanted.uuid}'
        files = vfio.device_files(self._host, directory)
        holders = self._writer.holders(wanted.card, files)
        if holders:
            reason = f'mdev {wanted.uuid} is open in process {holders[0]}'
            raise DeviceBusy(address=wanted.parent, reason=reason)
        try:
            self._writer.write(wanted.card, f'{directory}/remove', '1')
        except OSError as error:
            if error.errno not in _GONE:
                what = f'mdev {wanted.uuid} cannot be removed'
                raise refusal(wanted.parent, what, error) from None

    def _exists(self, wanted: Wanted) -> bool:
        """:raises DriverError: there is an mdev of that uuid, and it is another one"""
        if self._type(wanted.uuid) is None:
            return False
        if self._is_it(wanted):
            return True
        where = f'{self._parent(wanted.uuid)} of type {self._type(wanted.uuid)}'
        raise DriverError(
            reason=f'Mdev {wanted.uuid} exists on {where}, and is wanted on '
            f'{wanted.parent} of type {wanted.type_id}.'
        )

    def _is_it(self, wanted: Wanted) -> bool:
        found = self._type(wanted.uuid), self._parent(wanted.uuid)
        return found == (wanted.type_id, wanted.parent)

    def _type(self, uuid: str) -> str | None:
        """None: there is no such mdev."""
        return self._host.target(f'{_MDEVS}/{uuid}/mdev_type')

    def _parent(self, uuid: str) -> str | None:
        return pci_address(self._host.target(f'{_MDEVS}/{uuid}/..') or '')
