# SPDX-License-Identifier: Apache-2.0
"""Loading bitstreams into FPGA cards: nothing believed, and the result read back."""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from oslo_config import cfg
from oslo_log import log

from cyborg_lite.drivers import host_tools
from cyborg_lite.drivers.bitstream_files import Header, NoBitstream
from cyborg_lite.drivers.fpga import Card, FpgaDriver, Region, card_of
from cyborg_lite.drivers.pci import PciDriver
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.exceptions import (
    BitstreamRefused,
    DeviceBusy,
    DeviceGone,
    DriverError,
    LoadingFailed,
    ToolTimedOut,
)
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstreams import Bitstream
from cyborg_lite.model.inventory import Device, Finding

LOG = log.getLogger(__name__)


class LoadingFpgaDriver(FpgaDriver):
    """Cards into which a tool of the vendor loads another function."""

    LOADS: ClassVar[bool] = True
    TOOL: ClassVar[str]

    def __init__(
        self,
        host: Host,
        options: Mapping[str, Any],
        runner: host_tools.Runner | None = None,
    ) -> None:
        super().__init__(host, options)
        self._run = runner or host_tools.Tools(host.kernel)
        self._guard = threading.Lock()
        self._loading: dict[str, Finding] = {}  # what was true before, by address
        self._last: dict[str, Card] = {}  # by address; a guest hides what it has
        # Digests of what was loaded, by deployable; empty: nobody knows what is there.
        self._digests: dict[str, str] = {}

    def remember(self, device: Device) -> None:
        """As ``Remembering`` says."""
        function = PciFunction(self._host, device.address)
        self._last[device.address] = card_of(function, device.root)

    def header(self, image: Path) -> Header:
        """:raises NoBitstream: the file is none that the card takes"""
        raise NotImplementedError

    def command(self, card: Card, region: Region, image: Path) -> list[str]:
        raise NotImplementedError

    def shell_command(self, card: Card, image: Path) -> list[str]:
        """Empty: no tool loads a shell into a card that runs."""
        return []

    def busy(self, card: Card, region: Region) -> str:
        """Why it cannot be loaded now; empty: it can."""
        return ''

    def discover(self) -> Iterator[Finding]:
        with self._guard:
            loading = dict(self._loading)
        for finding in super().discover():
            # Half loaded it would be reported as what it will not be in a second.
            yield loading.get(finding.address, finding)

    def program(self, deployable: str, image: Path, wanted: Bitstream) -> Device:
        """As ``Programmable`` says."""
        card, region = self._find(deployable)
        self._check(card, region, image, wanted)
        address = card.function.address
        if self._is_there(card, region, deployable, wanted):
            LOG.info('%s holds function %s already.', deployable, wanted.function_id)
            return self._judged(address)
        reason = self.busy(card, region)
        if reason:
            raise DeviceBusy(address=address, reason=reason)
        finding = self.judge(card.function)
        with self._guard:
            if finding is not None:
                self._loading[address] = finding
        try:
            self._load(deployable, region, image, wanted)
            self._digests[deployable] = wanted.hash_value
        except LoadingFailed:
            self._digests[deployable] = ''
            raise
        finally:
            with self._guard:
                self._loading.pop(address, None)
        return self._judged(address)

    def _is_there(
        self, card: Card, region: Region, deployable: str, wanted: Bitstream
    ) -> bool:
        """By its function; but one function may have been built more than once."""
        if wanted.is_shell:
            return wanted.function_id in _shells(card) and not region.trouble
        last = self._digests.get(deployable, wanted.hash_value)
        same = region.function_id == wanted.function_id and last == wanted.hash_value
        return same and not region.trouble

    def _load(
        self, deployable: str, before: Region, file: Path, wanted: Bitstream
    ) -> None:
        image = wanted.image_id
        card, _ = self._find(deployable)
        command = (
            self.shell_command(card, file)
            if wanted.is_shell
            else self.command(card, before, file)
        )
        try:
            outcome = self._run(command, self._options['program_timeout'])
        except ToolTimedOut as error:
            raise LoadingFailed(image=image, reason=error.text) from error
        try:
            card, after = self._find(deployable)
        except DriverError as error:
            raise LoadingFailed(image=image, reason=error.text) from error
        right = (
            wanted.function_id in _shells(card)
            if wanted.is_shell
            else self._holds(after, wanted)
        )
        if not outcome.status and not after.trouble and right:
            return
        # Tools name the file that they were given; where it lies concerns nobody.
        said = outcome.summary.replace(str(file), 'the file')
        shown = f'the card shows function {after.function_id or "none"}.'
        reason = after.trouble or (said if outcome.status else shown)
        if after == before and before.function_id and not before.trouble:
            said = f'Loading bitstream {image} failed, and nothing changed: {reason}'
            raise DriverError(reason=said)
        raise LoadingFailed(image=image, reason=reason)

    def _holds(self, region: Region, wanted: Bitstream) -> bool:
        """By what the hardware shows after a load that seems to have gone well."""
        return region.function_id == wanted.function_id

    def _find(self, deployable: str) -> tuple[Card, Region]:
        for function in self._host.pci_functions():
            root = f'{self._host.name}_{function.address}'
            if deployable != root and not deployable.startswith(f'{root}_'):
                continue
            if function.lost or not self.claims(function):
                raise DeviceGone(address=function.address)
            card = self.card(function)
            if card.trouble:
                raise DeviceBusy(address=function.address, reason=card.trouble)
            part = deployable.removeprefix(root).removeprefix('_')
            for region in card.regions:
                if part == region.name or (not part and len(card.regions) == 1):
                    return card, region
            reason = f'{deployable} is no region that can be loaded.'
            raise DriverError(reason=reason)
        raise DeviceGone(address=deployable.partition('_')[2])

    def _check(
        self, card: Card, region: Region, image: Path, wanted: Bitstream
    ) -> None:
        """:raises BitstreamRefused: by what stands in the file it is not for here"""
        try:
            header = self.header(image)
        except (NoBitstream, OSError) as error:
            said = str(error) if isinstance(error, NoBitstream) else 'No such file.'
            raise BitstreamRefused(image=wanted.image_id, reason=said) from None
        reason = ''
        if wanted.is_shell and not self.shell_command(card, image):
            reason = 'It is a shell; flash it by hand and power-cycle the host.'
        elif not wanted.is_shell and not self._fits(card, region, header):
            there = region.interface_id or 'that tells none'
            reason = f'It is for interface {header.interface_id}, not {there}.'
        elif header.function_id != wanted.function_id:
            said = f'its properties say {wanted.function_id}'
            reason = f'The file holds function {header.function_id}, {said}.'
        if reason:
            raise BitstreamRefused(image=wanted.image_id, reason=reason)

    def _fits(self, card: Card, region: Region, header: Header) -> bool:
        return bool(header.interface_id) and header.interface_id == region.interface_id

    def _judged(self, address: str) -> Device:
        finding = self.judge(PciFunction(self._host, address))
        if finding is None or finding.device is None:
            raise DeviceGone(address=address)
        return finding.device


def _shells(card: Card) -> list[str]:
    """All names that the shell of the card goes by."""
    return card.facts.get(bitstreams.SHELL, '').split()


def loading_options(tool: str) -> tuple[cfg.Opt, ...]:
    """What every driver with a loading tool lets the operator choose."""
    return (
        *PciDriver.OPTIONS,
        cfg.StrOpt(
            'tool',
            default=tool,
            help="""
The program that loads a bitstream into a card, by its path or, where it is
in the search path of the system, its name. Change it where the tools of the
vendor are installed elsewhere, or have another name in their newer releases.
""",
        ),
        cfg.IntOpt(
            'program_timeout',
            default=120,
            min=1,
            help="""
Seconds after which a bitstream that is not loaded yet is given up: the tool
is killed, and the region is out of use until something is loaded into it.
Raise it for large cards, and [conductor] agent_timeout with it.
""",
        ),
    )
