# SPDX-License-Identifier: Apache-2.0
"""Creation and removal of mediated devices (mdevs). Both are idempotent.

Libvirt and Nova store a persistent definition of an mdev with ``mdevctl``. The mdev of
a definition with autostart comes back at the next boot. The agent creates its mdevs
again itself, so it removes the definitions of their uuids.

Rules of the kernel (driver-api/vfio-mediated-device.rst): a uuid is unique on a host,
and a removal blocks, not interruptible by a signal, while a guest has the mdev open.
"""

import errno
import re
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.drivers.host import vfio
from cyborg_lite.drivers.host.kernel import Writer, to_driver_error
from cyborg_lite.drivers.host.sysfs import Host, PciFunction, pci_address
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError

LOG = log.getLogger(__name__)

_UUID: Final = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_MDEVS: Final = 'sys/bus/mdev/devices'
_GONE: Final = (errno.ENOENT, errno.ENODEV)
_DEFINITIONS: Final = 'etc/mdevctl.d'  # <parent>/<uuid>
_MDEVCTL: Final = 'mdevctl'  # Debian has it in /usr/bin, others in /usr/sbin


@dataclass(frozen=True, slots=True)
class MdevSpec:
    """The identity of one mdev."""

    uuid: str
    type_id: str  # name of a directory in mdev_supported_types
    parent: str  # PCI address of the function that provides the mdev
    card: str  # PCI address of the function that manages the parent; may be equal


class Mdevs:
    """Creates and removes the mdevs of the cards of one driver."""

    def __init__(self, host: Host, writer: Writer) -> None:
        self._host = host
        self._writer = writer

    def create(self, spec: MdevSpec) -> None:
        """Create an mdev, unless it exists.

        :raises DeviceBusy: the parent cannot provide it now
        :raises DriverError: it cannot be created, or its uuid is in use elsewhere
        """
        if self._check_existing(spec):
            return
        parent = PciFunction(self._host, spec.parent)
        create = parent.path(f'mdev_supported_types/{spec.type_id}/create')
        if not self._host.has(create):
            raise DeviceGone(address=spec.parent)
        try:
            self._writer.write(spec.card, create, spec.uuid)
        except OSError as error:
            # Another program, mdevctl for instance, may have created the same mdev.
            if error.errno == errno.EEXIST and self._check_existing(spec):
                return
            action = f'no mdev of {spec.type_id} can be created'
            if error.errno in (errno.EINVAL, errno.EIO, errno.EUSERS):
                # Vendor drivers return these errors if no mdev of the type is left or
                # an mdev of another type exists.
                raise DeviceBusy(
                    address=spec.parent, reason=f'{action}: {error.strerror}'
                ) from None
            raise to_driver_error(spec.parent, action, error) from None
        if not self._check_existing(spec):
            raise DriverError(
                reason=f'Device {spec.parent}: the kernel accepted mdev {spec.uuid}, '
                'but the mdev does not exist.'
            )

    def exists(self, spec: MdevSpec) -> bool:
        """Return True if the mdev exists with this type and parent."""
        identity = self._read_type(spec.uuid), self._read_parent(spec.uuid)
        return identity == (spec.type_id, spec.parent)

    def remove_definition(self, spec: MdevSpec) -> None:
        """Remove the persistent definition of an mdev, if there is one.

        A failure is logged only: the mdev of a running instance does not need it.
        """
        definition = f'{_DEFINITIONS}/{spec.parent}/{spec.uuid}'
        if not self._host.has(definition):
            return
        arguments = 'undefine', f'--uuid={spec.uuid}', f'--parent={spec.parent}'
        try:
            status, output = self._writer.run(spec.card, _MDEVCTL, *arguments)
            reason = output.strip() or f'exit status {status}'
        except DriverError as error:
            reason = str(error)
        # mdevctl reports success although it cannot write below /etc.
        if self._host.has(definition):
            LOG.warning(
                'Cannot remove definition /%s; its mdev returns at the next boot: %s',
                definition,
                reason,
            )

    def remove(self, spec: MdevSpec) -> None:
        """Remove an mdev. An mdev of the same uuid but another identity is ignored.

        :raises DeviceBusy: a guest has it open
        """
        if self._read_type(spec.uuid) is None or not self.exists(spec):
            return
        directory = f'{_MDEVS}/{spec.uuid}'
        process = vfio.find_process(self._writer, self._host, spec.card, [directory])
        if process is not None:
            reason = f'mdev {spec.uuid} is open in process {process}'
            raise DeviceBusy(address=spec.parent, reason=reason)
        try:
            self._writer.write(spec.card, f'{directory}/remove', '1')
        except OSError as error:
            if error.errno not in _GONE:
                action = f'mdev {spec.uuid} cannot be removed'
                raise to_driver_error(spec.parent, action, error) from None

    def _check_existing(self, spec: MdevSpec) -> bool:
        """Return True if the mdev exists.

        :raises DriverError: an mdev of the same uuid has another type or parent
        """
        if self._read_type(spec.uuid) is None:
            return False
        if self.exists(spec):
            return True
        parent, type_id = self._read_parent(spec.uuid), self._read_type(spec.uuid)
        raise DriverError(
            reason=f'Mdev {spec.uuid} exists on {parent} with type {type_id}; it was '
            f'to be created on {spec.parent} with type {spec.type_id}.'
        )

    def _read_type(self, uuid: str) -> str | None:
        """Return the type id of an mdev, or None if there is no mdev of this uuid."""
        return self._host.target(f'{_MDEVS}/{uuid}/mdev_type')

    def _read_parent(self, uuid: str) -> str | None:
        return pci_address(self._host.target(f'{_MDEVS}/{uuid}/..') or '')


def find_user(function: PciFunction) -> str | None:
    """Return a mediated device of a function, or None without one."""
    for name in function.names():
        path = function.path(f'{name}/mdev_type')
        if _UUID.fullmatch(name) and function.host.has(path):
            return f'it has the mediated device {name}'
    return None
