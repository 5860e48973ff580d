# SPDX-License-Identifier: Apache-2.0
"""Intel FPGA cards: the kernel's dfl drivers, and the older ones of OPAE."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers import bitstream_files, host_tools
from cyborg_lite.drivers.fpga import Card, Region
from cyborg_lite.drivers.fpga_loading import LoadingFpgaDriver, loading_options
from cyborg_lite.drivers.intel_fpga_layout import Port, shell
from cyborg_lite.drivers.pci import OWNER, custom_name
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstreams import Bitstream
from cyborg_lite.model.inventory import Device

# By device id of the physical function. Kernel: drivers/fpga/dfl-pci.c.
_BOARDS: Final[Mapping[str, str]] = {
    '09c4': 'PAC_ARRIA10',
    '0b2b': 'PAC_D5005',
    '0b30': 'PAC_N3000',
    'bcbd': 'INTEGRATED',
    'bcc0': 'INTEGRATED',
    'bcce': 'OFS',
}
# The boards of OFS share an id; their subsystem tells them apart.
_OFS_BOARDS: Final = {
    '8086:1770': 'N6000',
    '8086:1771': 'N6001',
    '8086:17d4': 'C6100',
    '8086:138d': 'D5005',
}
_VIRTUAL: Final = frozenset({'09c5', '0b2c', 'bcbf', 'bcc1', 'bccf'})
_NO_FUNCTION: Final = re.compile('0*|f*')


class IntelFpga(LoadingFpgaDriver):
    """A region for each port; programming always goes through the physical function."""

    NAME: ClassVar[str] = 'intel_fpga_driver'
    VENDOR: ClassVar[str] = '8086'
    VENDOR_NAME: ClassVar[str] = 'intel'
    TOOL: ClassVar[str] = 'fpgaconf'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = loading_options(TOOL)
    MODELS: ClassVar[Mapping[str, str]] = {
        '09c4': 'PAC Arria 10 GX',
        '0b2b': 'PAC D5005',
        '0b30': 'PAC N3000',
        'bcce': 'OFS Agilex',
    }

    def __init__(
        self,
        host: Host,
        options: Mapping[str, Any],
        runner: host_tools.Runner | None = None,
    ) -> None:
        super().__init__(host, options, runner)
        # What was last loaded: of a port that a guest has nobody can read it.
        self._last_functions: dict[tuple[str, str], str] = {}

    def claims(self, function: PciFunction) -> bool:
        # Intel has neural processors of the same class.
        known = function.device in _BOARDS or function.device in _VIRTUAL
        dressed = function.names('fpga_region') or function.names('fpga')
        return super().claims(function) and (known or bool(dressed))

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        traits = (OWNER, 'CUSTOM_FPGA_INTEL')
        board = _board(function)
        return (*traits, custom_name('FPGA_INTEL', board)) if board else traits

    def region_traits(self, region: Region) -> tuple[str, ...]:
        found = (
            ('FPGA_FUNCTION_ID_INTEL', region.function_id),
            ('FPGA_REGION_INTEL', region.interface_id),
        )
        return tuple(custom_name(kind, name) for kind, name in found if name)

    def card(self, function: PciFunction) -> Card:
        seen = shell(function)
        if seen is None:
            return self._hidden(function)
        regions = tuple(self._region_of(function, port) for port in seen.ports)
        virtual = [region.virtual for region in regions if region.virtual]
        card = Card(
            function,
            handed=virtual[0] if virtual else function.address,
            regions=regions,
            facts={
                **_facts(function),
                bitstreams.VERSION: seen.version,
                bitstreams.SHELL: seen.identity,
            },
        )
        self._last[function.address] = card
        return card

    def _hidden(self, function: PciFunction) -> Card:
        """A guest that has the whole card hides all that is in it."""
        if not function.guest_driver:
            missing = 'neither dfl-pci nor intel-fpga-pci is bound to it'
            return Card(function, None, trouble=missing)
        unknown = Card(function, None, (Region('region0'),), _facts(function))
        last = self._last.get(function.address, unknown)
        return replace(last, function=function, handed=function.address)

    def header(self, image: Path) -> bitstream_files.Header:
        return bitstream_files.gbs(image)

    def command(self, card: Card, region: Region, image: Path) -> list[str]:
        domain, bus, rest = card.function.address.split(':')
        device, number = rest.split('.')
        where = ('--segment', domain), ('-B', bus), ('-D', device), ('-F', number)
        options = [word for name, text in where for word in (name, f'0x{text}')]
        return [self._options['tool'], *options, str(image)]

    def busy(self, card: Card, region: Region) -> str:
        if shell(card.function) is None:
            return f'it is bound to {card.function.driver}, a guest may have it'
        return ''

    def _holds(self, region: Region, wanted: Bitstream) -> bool:
        """Through a port that a guest is going to get nothing can be read.

        Then the word of the kernel that the load is complete must do.
        """
        return region.function_id in ('', wanted.function_id)

    def program(self, deployable: str, image: Path, wanted: Bitstream) -> Device:
        """As ``Programmable`` says."""
        device = super().program(deployable, image, wanted)
        card, region = self._find(deployable)
        if not region.function_id:
            key = card.function.address, region.name
            self._last_functions[key] = wanted.function_id
            device = self._judged(card.function.address)
        return device

    def _region_of(self, function: PciFunction, port: Port) -> Region:
        name = f'region{port.number}'
        known = '' if _NO_FUNCTION.fullmatch(port.function_id) else port.function_id
        key = function.address, name
        if port.readable:
            self._last_functions.pop(key, None)
        else:
            known = self._last_functions.get(key, '')
        return Region(
            name=name,
            interface_id=port.interface_id,
            function_id=known,
            trouble=port.trouble,
            virtual=port.virtual,
        )


def _facts(function: PciFunction) -> dict[str, str]:
    return {
        bitstreams.VENDOR: f'{IntelFpga.VENDOR} {IntelFpga.VENDOR_NAME}',
        bitstreams.BOARD: f'{_board(function)} {function.device}'.strip(),
    }


def _board(function: PciFunction) -> str:
    return _OFS_BOARDS.get(function.subsystem) or _BOARDS.get(function.device, '')
