# SPDX-License-Identifier: Apache-2.0
"""Intel FPGA cards with the dfl drivers of the kernel or the older OPAE drivers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from oslo_config import cfg
from oslo_log import log

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.fpga import files
from cyborg_lite.drivers.fpga.driver import FpgaCard, FpgaRegion
from cyborg_lite.drivers.fpga.files import ReadsHeader
from cyborg_lite.drivers.fpga.intel_layout import IntelPort, read_shell
from cyborg_lite.drivers.fpga.intel_ports import ON_FUNCTIONS, ON_HOST, PortModes
from cyborg_lite.drivers.fpga.loading import ProgrammableFpgaDriver, loading_options
from cyborg_lite.drivers.host.kernel import CHANGE_TIMEOUT
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.card_modes import MODES_OPTION, ModesPciDriver
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.devices.modes import OfferedInventory, list_inventory
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.model.traits import OWNER_CYBORG

LOG = log.getLogger(__name__)

# Board names by device id of the physical function (kernel: drivers/fpga/dfl-pci.c).
_BOARDS: Final[Mapping[str, str]] = {
    '09c4': 'PAC_ARRIA10',
    '0b2b': 'PAC_D5005',
    '0b30': 'PAC_N3000',
    'bcbd': 'INTEGRATED',
    'bcc0': 'INTEGRATED',
    'bcce': 'OFS',
}
# Boards of OFS have the same device id and differ in their subsystem ids.
_OFS_BOARDS: Final = {
    '8086:1770': 'N6000',
    '8086:1771': 'N6001',
    '8086:17d4': 'C6100',
    '8086:138d': 'D5005',
}
_VF_DEVICE_IDS: Final = frozenset({'09c5', '0b2c', 'bcbf', 'bcc1', 'bccf'})
_NO_FUNCTION: Final = re.compile('0*|f*')
_OFFER_MANAGEMENT: Final = cfg.BoolOpt(
    'offer_management_function',
    default=False,
    help="""
Offer the management function (FME) of a card whose port is not released to
a virtual function. Its guest can then write the flash of the card, and with
it attack the next guest and the host. Turn it on only if all guests are
trusted. By default only the virtual functions of released ports are offered.
""",
)


class IntelFpga(ProgrammableFpgaDriver, ModesPciDriver):
    """Driver for Intel FPGA cards: one region per port, loaded through the PF."""

    NAME: ClassVar[str] = 'intel_fpga_driver'
    TOOL: ClassVar[str] = 'fpgaconf'
    READERS: ClassVar[Mapping[str, ReadsHeader]] = {'gbs': files.read_gbs}
    IMAGE_DRIVERS: ClassVar[tuple[str, ...]] = ('dfl-pci', 'intel-fpga-pci')
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *loading_options(TOOL),
        _OFFER_MANAGEMENT,
        MODES_OPTION,
        CHANGE_TIMEOUT,
    )

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        # The function id of the last load by address and region: the port of a guest
        # cannot be read.
        self._last_functions: dict[tuple[str, str], str] = {}
        self._warned: set[str] = set()  # addresses of management functions
        self.card_modes = PortModes(self._writer, self.predict_inventory)

    def predict_inventory(
        self, function: PciFunction, mode: str
    ) -> tuple[OfferedInventory, ...]:
        """Return what a card offers in a mode."""
        card = self.read_card(function)
        address = card.function.address
        name = self.root_name(card.function)
        if mode == ON_HOST and not self._options['offer_management_function']:
            return ()
        groups = [card.regions[:1]]
        if mode == ON_FUNCTIONS:
            groups = [(region,) for region in card.regions]
        roots = (
            self._build_offered(card, name, address, regions) for regions in groups
        )
        return tuple(item for root in roots for item in list_inventory(root))

    def is_card_function(self, function: PciFunction) -> bool:
        """Return True for FPGA cards; neural processors have the same class."""
        is_listed = function.device in _BOARDS or function.device in _VF_DEVICE_IDS
        has_driver = function.names('fpga_region') or function.names('fpga')
        return super().is_card_function(function) and (is_listed or bool(has_driver))

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        traits = (OWNER_CYBORG, 'CUSTOM_FPGA_INTEL')
        board = _board(function)
        return (*traits, custom_name('FPGA_INTEL', board)) if board else traits

    def region_traits(self, region: FpgaRegion) -> tuple[str, ...]:
        ids = (
            ('FPGA_FUNCTION_ID_INTEL', region.function_id),
            ('FPGA_REGION_INTEL', region.interface_id),
        )
        return tuple(custom_name(prefix, item) for prefix, item in ids if item)

    def read_card(self, function: PciFunction) -> FpgaCard:
        shell = read_shell(function)
        if shell is None:
            return self._restore_hidden(function)
        regions = tuple(self._build_region_of(function, port) for port in shell.ports)
        virtual = [region.vf_address for region in regions if region.vf_address]
        card = FpgaCard(
            function,
            guest_address=virtual[0] if virtual else function.address,
            regions=regions,
            facts={
                **_facts(function),
                bitstreams.VERSION: shell.version,
                bitstreams.SHELL: shell.identity,
            },
        )
        self._last[function.address] = card
        return card

    def find_card_obstacle(self, card: FpgaCard) -> str | None:
        """Return the reason not to offer a management function, or None.

        The FPGA management engine (FME) of the physical function loads bitstreams and
        writes the flash (kernel: Documentation/fpga/dfl.rst).
        """
        address = card.function.address
        if card.function.is_virtual or address not in card.guest_addresses:
            return None
        if not self._options['offer_management_function']:
            return (
                'it is the management function (FME), which can write the flash; '
                f'set its mode to {ON_FUNCTIONS} to release its ports'
            )
        if address not in self._warned:
            self._warned.add(address)
            LOG.warning(
                'Card %s is offered with its management function (FME), because '
                'offer_management_function is set: its guest can write the flash',
                address,
            )
        return None

    def _restore_hidden(self, function: PciFunction) -> FpgaCard:
        """Return the last card read: a guest that has the card hides its content."""
        if not function.has_guest_driver:
            fault = 'neither dfl-pci nor intel-fpga-pci is bound to it'
            return FpgaCard(function, None, fault=fault)
        unknown = FpgaCard(function, None, (FpgaRegion('region0'),), _facts(function))
        last = self._last.get(function.address, unknown)
        return replace(last, function=function, guest_address=function.address)

    def build_command(
        self, card: FpgaCard, region: FpgaRegion, image: Path
    ) -> list[str]:
        domain, bus, slot = card.function.address.split(':')
        device, number = slot.split('.')
        location = ('--segment', domain), ('-B', bus), ('-D', device), ('-F', number)
        options = [word for name, text in location for word in (name, f'0x{text}')]
        return [self._options['tool'], *options, str(image)]

    def find_load_obstacle(self, card: FpgaCard, region: FpgaRegion) -> str:
        """Return that a guest may use the card, so that no load can start; or empty."""
        if read_shell(card.function) is None:
            return f'it is bound to {card.function.driver}; a guest may use it'
        return ''

    def _matches(self, region: FpgaRegion, bitstream: Bitstream) -> bool:
        """Return True if the region shows the bitstream, or cannot be read.

        A port that is released to a VF cannot be read. In this case the status of the
        kernel that the load is complete is sufficient.
        """
        return region.function_id in ('', bitstream.function_id)

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        device = super().program(deployable, image, bitstream)
        card, region = self._find(deployable)
        if not region.function_id:
            key = card.function.address, region.name
            self._last_functions[key] = bitstream.function_id
            device = self.read_device(card.function.address)
        return device

    def _build_region_of(self, function: PciFunction, port: IntelPort) -> FpgaRegion:
        name = f'region{port.number}'
        is_empty = _NO_FUNCTION.fullmatch(port.function_id)
        function_id = '' if is_empty else port.function_id
        key = function.address, name
        if port.is_readable:
            self._last_functions.pop(key, None)
        else:
            function_id = self._last_functions.get(key, '')
        return FpgaRegion(
            name=name,
            interface_id=port.interface_id,
            function_id=function_id,
            fault=port.fault,
            vf_address=port.vf_address,
        )


def _facts(function: PciFunction) -> dict[str, str]:
    return {
        bitstreams.VENDOR: f'{IntelFpga.VENDOR} {IntelFpga.VENDOR_NAME}',
        bitstreams.BOARD: f'{_board(function)} {function.device}'.strip(),
    }


def _board(function: PciFunction) -> str:
    return _OFS_BOARDS.get(function.subsystem) or _BOARDS.get(function.device, '')
