# SPDX-License-Identifier: Apache-2.0
"""Virtual functions, created for their first user and removed after the last.

Only virtual functions that the agent created are removed. A mark file below ``/run``
records this. A reboot deletes the mark file together with the virtual functions.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from oslo_log import log

from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.errors.drivers import DeviceBusy, DeviceHangs, DriverError

LOG = log.getLogger(__name__)

_MARKS: Final = 'run/cyborg-lite/virtual-functions'
_MAX_ROUTING_ID: Final = 0xFFFF  # bus, device and function


def list_vf_addresses(card: PciFunction, count: int) -> tuple[str, ...]:
    """Return the addresses that the first virtual functions of a card have.

    The virtual functions need not exist. Their routing ids follow from offset and
    stride (PCI SR-IOV specification, "VF Routing ID"). A card may change both with the
    number of virtual functions. So the result is certain only if they exist; then the
    links of ``PciFunction.virtfns`` show the same.

    :param count: number of virtual functions
    :returns: empty if the card does not show offset and stride, or shows numbers that
        no card can have
    """
    offset, stride = card.number('sriov_offset'), card.number('sriov_stride')
    # A card with one virtual function needs no stride.
    if not offset or stride is None or (count > 1 and not stride):
        return ()
    domain, bus, device_function = card.address.split(':')
    slot, _, function = device_function.partition('.')
    own = int(bus, 16) << 8 | int(slot, 16) << 3 | int(function)
    last = own + offset + stride * (count - 1)
    if min(offset, stride) < 0 or last > _MAX_ROUTING_ID:
        return ()
    routing_ids = (own + offset + stride * index for index in range(count))
    return tuple(
        f'{domain}:{routing_id >> 8:02x}:{routing_id >> 3 & 0x1F:02x}.{routing_id & 7}'
        for routing_id in routing_ids
    )


class SriovSwitch(Protocol):
    """A way to enable and disable the virtual functions of a card."""

    def enable(self, card: PciFunction) -> None:
        """Create the virtual functions of a card.

        :raises DriverError: they cannot be created
        """

    def disable(self, card: PciFunction) -> None:
        """Remove the virtual functions of a card.

        :raises DriverError: they cannot be removed
        """


class VirtualFunctions:
    """Creates and removes the virtual functions of the cards of one driver.

    The caller must not change one card from two threads at a time.
    """

    def __init__(self, host: Host, switch: SriovSwitch) -> None:
        self._host = host
        self._switch = switch
        self._created: set[str] = set()  # addresses of cards
        # By address and ids of cards: as last created.
        self._addresses: dict[tuple[str, str], tuple[str, ...]] = {}

    def list_addresses(self, card: PciFunction, count: int) -> tuple[str, ...]:
        """Return the addresses that virtual functions of a card will have.

        They are those at which the kernel has created as many before, because offset
        and stride of a card without virtual functions may differ.

        :returns: empty if the card does not show offset and stride
        """
        addresses = self._addresses.get((card.address, card.ids), ())
        if len(addresses) == count:
            return addresses
        return list_vf_addresses(card, count)

    def create(self, card: PciFunction, address: str) -> None:
        """Enable the virtual functions of a card, unless it has the one at ``address``.

        :raises DriverError: the card cannot have a virtual function at this address
        """
        before = PciFunction(self._host, card.address).virtfns
        if address in before:
            return
        if not before:
            # Mark the card first: the agent may crash right after the change.
            self._mark_created(card.address)
        try:
            self._switch.enable(card)
        except DeviceHangs:
            raise  # the virtual functions may still appear
        except DriverError:
            # Another program may create virtual functions later.
            if not PciFunction(self._host, card.address).virtfns:
                self._unmark(card.address)
            raise
        present = PciFunction(self._host, card.address).virtfns
        self._addresses[card.address, card.ids] = present
        if address not in present:
            if not before:
                self._remove_incomplete(card)
            raise DriverError(
                reason=f'Device {card.address} has {len(present)} virtual functions, '
                f'but none at {address}.'
            )
        LOG.info('Created %d virtual functions of %s', len(present), card.address)

    def remove(self, card: PciFunction) -> None:
        """Disable the virtual functions of a card if the agent created them.

        The caller must check that none of them is in use.
        """
        if card.address not in self._created and not self._mark(card.address).exists():
            return
        if PciFunction(self._host, card.address).virtfns:
            self._switch.disable(card)
            LOG.info('Removed the virtual functions of %s', card.address)
        self._unmark(card.address)

    def _remove_incomplete(self, card: PciFunction) -> None:
        """Disable virtual functions that are fewer than the kernel was to create.

        If this fails, the mark stays, and a later ``remove`` disables them.
        """
        try:
            self.remove(card)
        except DriverError as error:
            LOG.warning(
                'Cannot remove the virtual functions of %s: %s', card.address, error
            )

    def _mark_created(self, address: str) -> None:
        self._created.add(address)
        mark = self._mark(address)
        try:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        except OSError as error:
            # Harmless: after a restart the agent does not remove the functions.
            LOG.warning('Cannot mark %s as changed by the agent: %s', address, error)

    def _unmark(self, address: str) -> None:
        self._created.discard(address)
        with suppress(OSError):
            self._mark(address).unlink()

    def _mark(self, address: str) -> Path:
        return self._host.root / _MARKS / address


class SysfsSriov:
    """Enables virtual functions through ``sriov_numvfs``.

    The interface is described in the kernel document PCI/pci-iov-howto.rst.
    """

    def __init__(self, writer: Writer, count: Callable[[PciFunction], int]) -> None:
        self._writer = writer
        self._count = count  # returns the number of virtual functions for a card

    def enable(self, card: PciFunction) -> None:
        """Create as many virtual functions as configured for a card without any."""
        present = len(card.virtfns)
        if present:
            # The kernel changes the number from or to 0 only.
            reason = f'it has {present} virtual functions of another program'
            raise DeviceBusy(address=card.address, reason=reason)
        # The host driver must not bind to functions that are meant for guests.
        self._writer.set_value(card.address, 'sriov_drivers_autoprobe', '0')
        count = str(self._count(card))
        self._writer.set_value(card.address, 'sriov_numvfs', count)

    def disable(self, card: PciFunction) -> None:
        self._writer.set_value(card.address, 'sriov_numvfs', '0')
