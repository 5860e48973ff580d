# SPDX-License-Identifier: Apache-2.0
"""Virtual functions made when the first one is wanted, and removed after the last.

Only those that were made here are removed. That is written down below ``/run``, which
a reboot empties as it does away with the functions.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from oslo_log import log

from cyborg_lite.drivers.kernel import Writer, refusal
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.exceptions import DeviceBusy, DriverError

LOG = log.getLogger(__name__)

_MARKS: Final = 'run/cyborg-lite/virtual-functions'
_TOOL: Final = 'sriov-manage'
SRIOV_MANAGE: Final = f'usr/lib/nvidia/{_TOOL}'
# Any reader of the vendor's library may hold the card for a moment.
_LOCKED: Final = 'unbindLock'
_ATTEMPTS: Final = 3


def planned(card: PciFunction, count: int) -> tuple[str, ...]:
    """Where virtual functions of a card are, or would be if there were that many.

    Routing ids as the PCI SR-IOV specification counts them; nothing where the card
    does not say.
    """
    offset, stride = card.number('sriov_offset'), card.number('sriov_stride')
    if not offset or not stride:
        return ()
    domain, bus, rest = card.address.split(':')
    slot, _, function = rest.partition('.')
    own = int(bus, 16) << 8 | int(slot, 16) << 3 | int(function)
    routing = (own + offset + stride * index for index in range(count))
    return tuple(
        f'{domain}:{each >> 8:02x}:{each >> 3 & 0x1F:02x}.{each & 7}'
        for each in routing
    )


class Switch(Protocol):
    """How the virtual functions of a kind of card are turned on and off."""

    def on(self, card: PciFunction) -> None:
        """:raises DriverError: it cannot be"""
        ...

    def off(self, card: PciFunction) -> None:
        """:raises DriverError: it cannot be"""
        ...


class VirtualFunctions:
    """Those of one driver's cards. One card at a time, says the caller."""

    def __init__(self, host: Host, switch: Switch) -> None:
        self._host = host
        self._switch = switch
        self._made: set[str] = set()  # addresses of cards

    def make(self, card: PciFunction, wanted: str) -> None:
        """See to it that the card has the one of this address.

        :raises DriverError: it cannot have it
        """
        present = PciFunction(self._host, card.address).virtfns
        if wanted in present:
            return
        if not present:
            # Before it is done: the agent may die as soon as it is.
            self._write_down(card.address)
        self._switch.on(card)
        made = PciFunction(self._host, card.address).virtfns
        if wanted not in made:
            raise DriverError(
                reason=f'Device {card.address} has {len(made)} virtual functions, and '
                f'{wanted} is none of them.'
            )
        LOG.info('Made %d virtual functions of %s.', len(made), card.address)

    def unmake(self, card: PciFunction) -> None:
        """Remove them, if they were made here. The caller knows that none is in use."""
        if card.address not in self._made and not self._mark(card.address).exists():
            return
        if PciFunction(self._host, card.address).virtfns:
            self._switch.off(card)
            LOG.info('Removed the virtual functions of %s.', card.address)
        self._made.discard(card.address)
        with suppress(OSError):
            self._mark(card.address).unlink()

    def _write_down(self, address: str) -> None:
        self._made.add(address)
        mark = self._mark(address)
        try:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        except OSError as error:
            # The functions will outlive the agent's next restart, and harm nobody.
            LOG.warning('Cannot write down what was made of %s: %s', address, error)

    def _mark(self, address: str) -> Path:
        return self._host.root / _MARKS / address


class NumberOfFunctions:
    """By a write of their number, as any driver in the kernel has it."""

    def __init__(self, writer: Writer, count: Callable[[PciFunction], int]) -> None:
        self._writer = writer
        self._count = count

    def on(self, card: PciFunction) -> None:
        present = len(card.virtfns)
        if present:
            # Other than from 0 the kernel changes it for nobody.
            reason = f'it has {present} virtual functions that others made'
            raise DeviceBusy(address=card.address, reason=reason)
        # The host's own driver for them would be in the way of the guest.
        self._write(card, 'sriov_drivers_autoprobe', '0')
        self._write(card, 'sriov_numvfs', str(self._count(card)))

    def off(self, card: PciFunction) -> None:
        self._write(card, 'sriov_numvfs', '0')

    def _write(self, card: PciFunction, name: str, text: str) -> None:
        try:
            self._writer.write(card.address, card.path(name), text)
        except OSError as error:
            what = f'{name} cannot be set to {text}'
            raise refusal(card.address, what, error) from None


class SriovManage:
    """By the tool of NVIDIA, whose driver refuses a number."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def on(self, card: PciFunction) -> None:
        self._run(card, '-e')

    def off(self, card: PciFunction) -> None:
        self._run(card, '-d')

    def _run(self, card: PciFunction, flag: str) -> None:
        output = ''
        for _ in range(_ATTEMPTS):
            try:
                status, output = self._writer.run(
                    card.address, _TOOL, flag, card.address
                )
            except OSError as error:
                raise refusal(card.address, _TOOL, error) from None
            if status == 0:
                return
            if _LOCKED not in output:
                break
        said = output.strip().splitlines()[-1:] or ['no word']
        reason = f'{_TOOL} {flag} failed with {said[0]}'
        raise DeviceBusy(address=card.address, reason=reason)
