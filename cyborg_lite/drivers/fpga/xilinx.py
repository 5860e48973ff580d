# SPDX-License-Identifier: Apache-2.0
"""Xilinx Alveo cards: a management function for the host, a user function for guests.

The files are those of the XRT drivers xclmgmt and xocl. The number in directory names
such as ``rom.m.55296`` depends on the slot.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.fpga import files
from cyborg_lite.drivers.fpga.driver import FpgaCard, FpgaRegion
from cyborg_lite.drivers.fpga.files import BitstreamHeader, ReadsHeader
from cyborg_lite.drivers.fpga.loading import ProgrammableFpgaDriver, loading_options
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import normalize_id
from cyborg_lite.model.inventory.host_report import Deployable, DiscoveryResult, Health

_MANAGEMENT_DRIVER: Final = 'xclmgmt'
_USER_DRIVER: Final = 'xocl'
_GOLDEN: Final = re.compile('d0[0-9a-f]{2}')  # device ids of cards without a shell
_NEEDS_SHELL: Final = 'golden image: needs base shell and a cold boot'
_VERSION: Final = re.compile(r'_(\d+)_(\d+)$')
_CONTEXTS: Final = re.compile(r'^contexts:\s*(\d+)', re.MULTILINE)


class XilinxFpga(ProgrammableFpgaDriver):
    """Driver for Alveo cards: both functions are one device, with one region."""

    NAME: ClassVar[str] = 'xilinx_fpga_driver'
    TOOL: ClassVar[str] = '/opt/xilinx/xrt/bin/xbutil'
    # A shell of a two-stage platform has the same header as a bitstream.
    READERS: ClassVar[Mapping[str, ReadsHeader]] = {
        'xclbin': files.read_xclbin,
        'xsabin': files.read_xclbin,
    }
    IMAGE_DRIVERS: ClassVar[tuple[str, ...]] = (_USER_DRIVER, _MANAGEMENT_DRIVER)
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *loading_options(TOOL),
        cfg.StrOpt(
            'shell_tool',
            default='/opt/xilinx/xrt/bin/xbmgmt',
            help="""
Program that loads the shell of a two-stage platform into a card: a path, or
the name of a tool in /etc/cyborg-lite/privileges.d. Change it if the vendor
tools are installed elsewhere.
""",
        ),
    )

    def classify(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function; the user function has no device."""
        if function.vendor != self.VENDOR or not self.is_card_function(function):
            return None
        if not function.is_virtual and _is_user(function):
            management = self._partner(function, is_user=False)
            address = management.address if management else 'an absent card'
            return self.build_result(function, f'user function of {address}')
        return super().classify(function)

    def classify_card(self, function: PciFunction) -> DiscoveryResult:
        if _GOLDEN.fullmatch(function.device):
            root = Deployable(
                self.root_name(function), self.RESOURCE_CLASS, self.traits(function)
            )
            device = self.build_device(function, root, Health.DEGRADED, _NEEDS_SHELL)
            return self.build_result(function, _NEEDS_SHELL, device)
        if self._partner(function, is_user=True) is None:
            return self.build_withheld(function, 'it has no user function')
        return super().classify_card(function)

    def find_obstacle(self, function: PciFunction) -> str | None:
        management = self._partner(function, is_user=False)

        def is_other_card(member: PciFunction) -> bool:
            # The management function stays with the host, so it is no competitor.
            return self.recognizes(member) and member != management

        return self._iommu_groups.find_obstacle(
            function, is_other_card
        ) or self.find_reset_obstacle(function)

    def read_card(self, function: PciFunction) -> FpgaCard:
        """Read a card; while a guest has it, the region is as last read."""
        user = self._partner(function, is_user=True)
        if user is None:
            return replace(self._read_static(function), regions=())
        last = self._last.get(function.address, self._read_static(function))
        is_hidden = user.driver != _USER_DRIVER
        card = last if is_hidden else self._read_loaded(function, user)
        self._last[function.address] = card
        contexts = _CONTEXTS.search(user.text('kdsstat') or '')
        return replace(
            card,
            function=function,
            guest_address=user.address,
            fault=_find_fault(function),
            in_use=contexts is not None and int(contexts[1]) > 0,
        )

    def _read_static(self, function: PciFunction) -> FpgaCard:
        """Read the facts of the management function, which a guest never has."""
        platform = _read_sub_device(function, 'rom.m', 'VBNV')
        version = _VERSION.search(platform)
        board = function.text('board_name') or ''
        facts = {
            bitstreams.VENDOR: f'{self.VENDOR} xilinx',
            bitstreams.BOARD: f'{board} {function.device}'.strip(),
            bitstreams.VERSION: '.'.join(version.groups()) if version else '',
            bitstreams.SHELL: platform,
        }
        return FpgaCard(function, None, (FpgaRegion('region0'),), facts)

    def build_command(
        self, card: FpgaCard, region: FpgaRegion, image: Path
    ) -> list[str]:
        """Return the command line of xbutil for the user function.

        The option ``--base`` would write the flash of the card.
        """
        device = '--device', card.guest_address or ''
        return [self._options['tool'], 'program', *device, '--user', str(image)]

    def build_shell_command(self, card: FpgaCard, image: Path) -> list[str]:
        """Return the command line of xbmgmt; the flash of the card is not changed."""
        device = '--device', card.function.address
        return [self._options['shell_tool'], 'program', *device, '--shell', str(image)]

    def find_load_obstacle(self, card: FpgaCard, region: FpgaRegion) -> str:
        """Return who may use the card, so that no load can start; empty if nobody."""
        user = PciFunction(self._host, card.guest_address or '')
        if user.driver != _USER_DRIVER:
            return f'{user.address} is bound to {user.driver}; a guest may use it'
        return 'a process of the host uses it' if card.in_use else ''

    def _fits(
        self, card: FpgaCard, region: FpgaRegion, header: BitstreamHeader
    ) -> bool:
        if header.interface_id:
            return header.interface_id == region.interface_id
        # A one-stage shell has no interface id; only its name identifies it.
        platform = _read_sub_device(card.function, 'rom.m', 'VBNV')
        return bool(platform) and _normalize(header.platform) == _normalize(platform)

    def _partner(self, function: PciFunction, *, is_user: bool) -> PciFunction | None:
        for sibling in function.siblings:
            if not self.recognizes(sibling) or sibling.is_virtual:
                continue
            if _is_user(sibling) == is_user:
                return sibling
        return None

    def _read_loaded(self, function: PciFunction, user: PciFunction) -> FpgaCard:
        """Read the region through the user function while its driver is bound."""
        loaded = normalize_id(user.text('xclbinuuid') or '')
        interfaces = (user.text('interface_uuids') or '').split()
        logic = (user.text('logic_uuids') or '').split()
        state = _read_sub_device(function, 'fmgr.m', 'fpga_manager/fpga*/state')
        region = FpgaRegion(
            'region0',
            interface_id=normalize_id(interfaces[0]) if interfaces else '',
            function_id=loaded if loaded.strip('0') else '',
            fault=f'FPGA manager: {state}' if 'error' in state else '',
        )
        card = self._read_static(function)
        names = *interfaces[:1], *logic[:1], card.facts[bitstreams.SHELL]
        shells = ' '.join(normalize_id(name) for name in names if name)
        return replace(
            card, regions=(region,), facts={**card.facts, bitstreams.SHELL: shells}
        )


def _is_user(function: PciFunction) -> bool:
    if function.driver in (_MANAGEMENT_DRIVER, _USER_DRIVER):
        return function.driver == _USER_DRIVER
    return function.address.endswith('.1')


def _find_fault(function: PciFunction) -> str:
    status = _read_sub_device(function, 'firewall.m', 'status')
    if status not in ('', '0'):
        return f'its firewall has tripped (status {status})'
    if function.text('dev_offline') == '1':
        return 'it is offline'
    return ''


def _read_sub_device(function: PciFunction, kind: str, path: str) -> str:
    """Return the text of a file of a sub-device, whatever the number of its name.

    :param kind: name of the sub-device without the number
    :param path: file below it; `fpga*` stands for the first name in that directory
    """
    for name in function.names():
        if name.startswith(f'{kind}.'):
            parent, star, suffix = path.partition('fpga*')
            if not star:
                return function.text(f'{name}/{path}') or ''
            for manager in function.names(f'{name}/{parent}'):
                return function.text(f'{name}/{parent}{manager}{suffix}') or ''
    return ''


def _normalize(platform: str) -> str:
    return re.sub('[^a-z0-9]', '_', platform.lower())
