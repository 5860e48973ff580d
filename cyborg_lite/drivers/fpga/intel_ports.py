# SPDX-License-Identifier: Apache-2.0
"""Release of the ports of Intel FPGA cards to virtual functions.

A port belongs to the physical function, which also has the management engine (FME), or
to a virtual function. ``fpgaport`` of OPAE releases a port before virtual functions are
created, and assigns it again after they are removed (kernel: fpga/dfl.rst).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers.fpga.intel_layout import list_numbered, read_port_number
from cyborg_lite.drivers.host import vfio
from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.pci.card_modes import CardModes
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.modes import OfferedInventory
from cyborg_lite.model.inventory.host_report import Device

FPGAPORT: Final = 'usr/bin/fpgaport'  # below the root of the host
ON_HOST: Final = 'ports-on-host'
ON_FUNCTIONS: Final = 'ports-on-vfs'


@dataclass(frozen=True, slots=True)
class PortState:
    """The places of the ports of a card."""

    management: str  # device file of the FME, such as /dev/dfl-fme.0
    total: int  # ports that can be released
    on_host: tuple[int, ...]  # numbers of the ports of the physical function
    functions: int  # existing virtual functions

    @property
    def mode(self) -> str | None:
        """The mode of the card; None: a change was interrupted."""
        if not self.functions and len(self.on_host) >= self.total:
            return ON_HOST
        is_released = not self.on_host and self.functions == self.total
        return ON_FUNCTIONS if is_released else None


def read_ports(card: PciFunction) -> PortState | None:
    """Return the places of the ports; None: the kernel cannot release any."""
    for region in card.names('fpga_region'):
        base = f'fpga_region/{region}'
        for management in list_numbered(card, base, 'dfl-fme'):
            numbers = (
                read_port_number(card, port)
                for port in list_numbered(card, base, 'dfl-port')
            )
            ports = card.number(f'{management}/ports_num') or 0
            total = min(ports, card.number('sriov_totalvfs') or 0)
            name = management.rpartition('/')[2]
            if not total or not re.fullmatch(r'dfl-fme\.\d+', name):
                return None
            return PortState(f'/dev/{name}', total, tuple(numbers), len(card.virtfns))
    return None


class PortModes(CardModes):
    """The places of the ports of cards; none if the kernel cannot release them."""

    def __init__(
        self,
        writer: Writer,
        predict: Callable[[PciFunction, str], Iterable[OfferedInventory]],
    ) -> None:
        self._writer = writer
        self._predict = predict  # returns what a card offers in a mode

    def list_inventory(
        self, card: PciFunction, device: Device
    ) -> Mapping[str, Iterable[OfferedInventory]]:
        if card.is_virtual or read_ports(card) is None:
            return {}
        return {name: self._predict(card, name) for name in (ON_HOST, ON_FUNCTIONS)}

    def has_mode(self, card: PciFunction, mode: str) -> bool:
        state = read_ports(card)
        return state is not None and state.mode == mode

    def set_mode(self, card: PciFunction, mode: str) -> None:
        """Move all ports of a card.

        :param mode: ``ON_HOST`` or ``ON_FUNCTIONS``
        """
        state = read_ports(card)
        if state is None:
            reason = f'Device {card.address} cannot release its ports.'
            raise DriverError(reason=reason)
        vfio.check_functions_closed(self._writer, card)
        if mode == ON_FUNCTIONS:
            self._release(card, state)
        else:
            self._assign(card, state)

    def _release(self, card: PciFunction, state: PortState) -> None:
        # The kernel changes the number of virtual functions from or to 0 only.
        if state.functions and (state.on_host or state.functions != state.total):
            self._writer.set_value(card.address, 'sriov_numvfs', '0')
            state = PortState(state.management, state.total, state.on_host, 0)
        for number in state.on_host[: state.total]:
            self._run(card, 'release', state.management, str(number))
        if not state.functions:
            # The host driver must not bind to functions that are meant for guests.
            self._writer.set_value(card.address, 'sriov_drivers_autoprobe', '0')
            self._writer.set_value(card.address, 'sriov_numvfs', str(state.total))

    def _assign(self, card: PciFunction, state: PortState) -> None:
        if state.functions:
            self._writer.set_value(card.address, 'sriov_numvfs', '0')
        for number in range(state.total):
            if number not in state.on_host:
                self._run(card, 'assign', state.management, str(number))

    def _run(self, card: PciFunction, *arguments: str) -> None:
        self._writer.run_or_raise(card.address, FPGAPORT, *arguments)
