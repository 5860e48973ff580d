# SPDX-License-Identifier: Apache-2.0
"""Xilinx Alveo cards: a management function that stays here, a user function to give.

XRT: sysfs of xclmgmt and xocl. The number in the names of directories such as
``rom.m.55296`` depends on the slot.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers import bitstream_files
from cyborg_lite.drivers.bitstream_files import Header
from cyborg_lite.drivers.fpga import Card, Region
from cyborg_lite.drivers.fpga_loading import LoadingFpgaDriver, loading_options
from cyborg_lite.drivers.passthrough import group_obstacle
from cyborg_lite.drivers.sysfs import PciFunction
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstreams import normal_id
from cyborg_lite.model.inventory import Deployable, Finding, Health

_MANAGEMENT: Final = 'xclmgmt'
_USER: Final = 'xocl'
_GOLDEN: Final = re.compile('d0[0-9a-f]{2}')  # ids of cards that only can be flashed
_NEEDS_SHELL: Final = 'golden image: needs base shell and a cold boot'
_VERSION: Final = re.compile(r'_(\d+)_(\d+)$')
_CONTEXTS: Final = re.compile(r'^contexts:\s*(\d+)', re.MULTILINE)


class XilinxFpga(LoadingFpgaDriver):
    """Both functions of a card are one device, with one region."""

    NAME: ClassVar[str] = 'xilinx_fpga_driver'
    VENDOR: ClassVar[str] = '10ee'
    VENDOR_NAME: ClassVar[str] = 'XILINX'
    TOOL: ClassVar[str] = '/opt/xilinx/xrt/bin/xbutil'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *loading_options(TOOL),
        cfg.StrOpt(
            'shell_tool',
            default='/opt/xilinx/xrt/bin/xbmgmt',
            help="""
The program that loads the shell of a two-stage platform into a card, by its
path or, where it is in the search path of the system, its name. Change it
where the tools of the vendor are installed elsewhere.
""",
        ),
    )
    MODELS: ClassVar[Mapping[str, str]] = {
        '5000': 'Alveo U200',
        '5004': 'Alveo U250',
        '500c': 'Alveo U280',
        '5020': 'Alveo U50',
        'd000': 'Alveo U200, golden image',
        'd004': 'Alveo U250, golden image',
    }

    def judge(self, function: PciFunction) -> Finding | None:
        if function.vendor != self.VENDOR or not self.claims(function):
            return None
        if not function.virtual and _is_user(function):
            management = self._partner(function, is_user=False)
            owner = management.address if management else 'a card that is not there'
            return self.finding(function, f'user function of {owner}')
        return super().judge(function)

    def judge_card(self, function: PciFunction) -> Finding:
        if _GOLDEN.fullmatch(function.device):
            root = Deployable(
                self.name_of(function), self.RESOURCE_CLASS, self.traits(function)
            )
            device = replace(
                self.device(function, root),
                health=Health.DEGRADED,
                health_reason=_NEEDS_SHELL,
            )
            return self.finding(function, _NEEDS_SHELL, device)
        if self._partner(function, is_user=True) is None:
            return self.withheld(function, 'it has no user function')
        return super().judge_card(function)

    def obstacle(self, function: PciFunction) -> str | None:
        management = self._partner(function, is_user=False)
        own = {function.address, management.address if management else ''}
        if function.iommu_group is not None and set(function.group_members) <= own:
            # Most boards have both in one group; whoever starts the guest sees to it
            # that nothing of the host is bound to the other one.
            return self._reset_obstacle(function)
        return group_obstacle(function, self._is_card) or self._reset_obstacle(function)

    def card(self, function: PciFunction) -> Card:
        user = self._partner(function, is_user=True)
        if user is None:
            return replace(self._stripped(function), regions=())
        last = self._last.get(function.address, self._stripped(function))
        hidden = user.driver != _USER
        card = last if hidden else self._shown(function, user)
        self._last[function.address] = card
        return replace(
            card,
            function=function,
            handed=user.address,
            trouble=_trouble(function),
            in_use=_contexts(user) > 0,
        )

    def _stripped(self, function: PciFunction) -> Card:
        """What the management function tells, which no guest ever gets."""
        platform = _below(function, 'rom.m', 'VBNV')
        version = _VERSION.search(platform)
        board = function.text('board_name') or ''
        facts = {
            bitstreams.VENDOR: f'{self.VENDOR} xilinx',
            bitstreams.BOARD: f'{board} {function.device}'.strip(),
            bitstreams.VERSION: '.'.join(version.groups()) if version else '',
            bitstreams.SHELL: platform,
        }
        return Card(function, None, (Region('region0'),), facts)

    def header(self, image: Path) -> Header:
        return bitstream_files.xclbin(image)

    def command(self, card: Card, region: Region, image: Path) -> list[str]:
        # The user function. `--base` would write the flash of the card.
        user = card.handed or ''
        return [
            self._options['tool'],
            'program',
            '--device',
            user,
            '--user',
            str(image),
        ]

    def shell_command(self, card: Card, image: Path) -> list[str]:
        # Into the running card, of two-stage platforms; the flash keeps what it has.
        where = '--device', card.function.address
        return [self._options['shell_tool'], 'program', *where, '--shell', str(image)]

    def busy(self, card: Card, region: Region) -> str:
        user = PciFunction(self._host, card.handed or '')
        if user.driver != _USER:
            return f'{user.address} is bound to {user.driver}, a guest may have it'
        return 'a process of the host works with it' if card.in_use else ''

    def _fits(self, card: Card, region: Region, header: Header) -> bool:
        if header.interface_id:
            return header.interface_id == region.interface_id
        # Cards whose shell is of one stage are told apart by its name alone.
        platform = _below(card.function, 'rom.m', 'VBNV')
        return bool(platform) and _plain(header.platform) == _plain(platform)

    def _partner(self, function: PciFunction, *, is_user: bool) -> PciFunction | None:
        for sibling in function.siblings:
            ours = sibling.vendor == self.VENDOR and self.claims(sibling)
            if ours and not sibling.virtual and _is_user(sibling) == is_user:
                return sibling
        return None

    def _shown(self, function: PciFunction, user: PciFunction) -> Card:
        """What the user function tells as long as it is with its driver."""
        loaded = normal_id(user.text('xclbinuuid') or '')
        interfaces = (user.text('interface_uuids') or '').split()
        logic = (user.text('logic_uuids') or '').split()
        state = _below(function, 'fmgr.m', 'fpga_manager/fpga*/state')
        region = Region(
            'region0',
            interface_id=normal_id(interfaces[0]) if interfaces else '',
            function_id=loaded if loaded.strip('0') else '',
            trouble=f'FPGA manager: {state}' if 'error' in state else '',
        )
        card = self._stripped(function)
        names = *interfaces[:1], *logic[:1], card.facts[bitstreams.SHELL]
        shells = ' '.join(normal_id(name) for name in names if name)
        return replace(
            card, regions=(region,), facts={**card.facts, bitstreams.SHELL: shells}
        )


def _is_user(function: PciFunction) -> bool:
    if function.driver in (_MANAGEMENT, _USER):
        return function.driver == _USER
    return function.address.endswith('.1')


def _trouble(function: PciFunction) -> str:
    status = _below(function, 'firewall.m', 'status')
    if status not in ('', '0'):
        return f'its firewall has tripped (status {status})'
    if function.text('dev_offline') == '1':
        return 'it is offline'
    return ''


def _contexts(user: PciFunction) -> int:
    found = _CONTEXTS.search(user.text('kdsstat') or '')
    return int(found[1]) if found else 0


def _below(function: PciFunction, kind: str, path: str) -> str:
    """What the file of a sub-device says, whatever number that has."""
    for name in function.names():
        if name.startswith(f'{kind}.'):
            parent, star, rest = path.partition('fpga*')
            if not star:
                return function.text(f'{name}/{path}') or ''
            for manager in function.names(f'{name}/{parent}'):
                return function.text(f'{name}/{parent}{manager}{rest}') or ''
    return ''


def _plain(platform: str) -> str:
    return re.sub('[^a-z0-9]', '_', platform.lower())
