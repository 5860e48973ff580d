# SPDX-License-Identifier: Apache-2.0
"""Loading of bitstreams into FPGA cards: the file is checked, the result read back."""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

from oslo_config import cfg, types
from oslo_log import log

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.fpga.driver import (
    BLANK,
    FPGA_OPTIONS,
    FpgaCard,
    FpgaDriver,
    FpgaRegion,
    restore_card,
)
from cyborg_lite.drivers.fpga.files import (
    BitstreamHeader,
    InvalidBitstreamFile,
    ReadsHeader,
)
from cyborg_lite.drivers.host import tools
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.errors.bitstreams import BitstreamRefused, LoadingFailed
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError, ToolTimedOut
from cyborg_lite.model.bitstreams import bitstreams, choice
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.devices.cleaning import LOGIC_STEP
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult

LOG = log.getLogger(__name__)

_VERSION: Final = re.compile(r'[\w.+~-]{1,64}', re.ASCII)  # of a host driver


class ProgrammableFpgaDriver(FpgaDriver):
    """Offers FPGA cards into which a vendor tool loads bitstreams."""

    LOADS: ClassVar[bool] = True
    TOOL: ClassVar[str]
    # Function that reads the header of a file, by type of the image; the first type
    # is that of images without a type.
    READERS: ClassVar[Mapping[str, ReadsHeader]]
    # Host drivers that images may name, the one that loads bitstreams first.
    IMAGE_DRIVERS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self.run_tool: tools.ToolRunner = tools.Tools(host.kernel)
        self._guard = threading.Lock()
        # The results from before a load in progress, by address.
        self._loading: dict[str, DiscoveryResult] = {}
        # The last card read, by address: a guest hides the content of its card.
        self._last: dict[str, FpgaCard] = {}
        # Digests of the files that this process loaded, by deployable. A region
        # without an entry may have the registers of an earlier instance.
        self._digests: dict[str, str] = {}

    def restore_device(self, device: Device) -> None:
        super().restore_device(device)
        function = PciFunction(self._host, device.control_address)
        self._last[device.control_address] = restore_card(function, device.root)

    def describe_handlers(self, card: FpgaCard) -> Mapping[str, str]:
        drivers = read_driver_versions(self._host, self.IMAGE_DRIVERS)
        return {
            bitstreams.TYPES: ' '.join(self.READERS),
            bitstreams.DRIVERS: choice.format_drivers(drivers),
            bitstreams.SETUP_ROLES: ' '.join(self._options.get('setup_roles', ())),
        }

    def read_header(self, image: Path, bitstream: Bitstream) -> BitstreamHeader:
        """Read the header of a file; the type of the image chooses the format.

        :raises InvalidBitstreamFile: the file has another format
        """
        default = next(iter(self.READERS))
        return self.READERS[(bitstream.type or default).lower()](image)

    def build_command(
        self, card: FpgaCard, region: FpgaRegion, image: Path
    ) -> list[str]:
        """Return the command that loads a bitstream into a region."""
        raise NotImplementedError

    def build_shell_command(self, card: FpgaCard, image: Path) -> list[str]:
        """Return the command that loads a shell; empty if no tool can load one."""
        return []

    def find_load_obstacle(self, card: FpgaCard, region: FpgaRegion) -> str:
        """Return why a region cannot be loaded now; empty if it can."""
        return ''

    def discover(self) -> Iterator[DiscoveryResult]:
        """Yield the results; a card that is being loaded keeps its last result."""
        with self._guard:
            loading = dict(self._loading)
        for result in super().discover():
            yield loading.get(result.address, result)

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        card, region = self._find(deployable)
        self._check_file(card, region, image, bitstream)
        if self._is_loaded(card, region, deployable, bitstream):
            function_id = bitstream.function_id
            LOG.info('%s already contains function %s', deployable, function_id)
            return self.read_device(card.function.address)
        return self._replace(deployable, image, bitstream)

    def find_blank_obstacle(self) -> str:
        is_set = bool(self._options.get('blank_bitstream'))
        return '' if is_set else f'[{self.NAME}] blank_bitstream is not set'

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        if name == LOGIC_STEP:
            self._digests[handle.deployable_name] = ''  # the next bind loads again
            return 'the next bitstream replaces the logic'
        if name != BLANK.name:
            return super().run_clean_step(handle, name, abort)
        self.list_clean_steps(handle)  # checks that no guest has the function open
        image = Path(self._options['blank_bitstream'])
        deployable = handle.deployable_name
        card, region = self._find(deployable)
        try:
            header = next(iter(self.READERS.values()))(image)
        except (InvalidBitstreamFile, OSError):
            reason = f'The file of [{self.NAME}] blank_bitstream cannot be read.'
            raise DriverError(reason=reason) from None
        if not self._fits(card, region, header):
            reason = f'The blank bitstream does not fit {deployable}.'
            raise DriverError(reason=reason)
        self._replace(deployable, image, _describe_blank(header))
        return f'function {header.function_id}'

    def _replace(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        """Load a checked file into a region; return the device as it is afterwards."""
        card, region = self._find(deployable)
        address = card.function.address
        reason = self.find_load_obstacle(card, region)
        if reason:
            raise DeviceBusy(address=address, reason=reason)
        result = self.classify(card.function)
        with self._guard:
            if result is not None:
                self._loading[address] = result
        try:
            self._load(deployable, region, image, bitstream)
            self._digests[deployable] = bitstream.hash_value
        except LoadingFailed:
            self._digests[deployable] = ''
            raise
        finally:
            with self._guard:
                self._loading.pop(address, None)
        return self.read_device(address)

    def _is_loaded(
        self, card: FpgaCard, region: FpgaRegion, deployable: str, bitstream: Bitstream
    ) -> bool:
        """Return True if the region is as a load of the bitstream has left it.

        Two builds of one function have the same function id, so the digest of the last
        load must match, too. After a restart of the agent each region is loaded again.
        """
        if bitstream.is_shell:
            return bitstream.function_id in _shell_ids(card) and not region.fault
        return (
            region.function_id == bitstream.function_id
            and self._digests.get(deployable) == bitstream.hash_value
            and not region.fault
        )

    def _load(
        self, deployable: str, before: FpgaRegion, file: Path, bitstream: Bitstream
    ) -> None:
        image = bitstream.image_id
        card, _ = self._find(deployable)
        command = (
            self.build_shell_command(card, file)
            if bitstream.is_shell
            else self.build_command(card, before, file)
        )
        try:
            tool_result = self.run_tool(command, self._options['program_timeout'])
        except ToolTimedOut as error:
            raise LoadingFailed(image=image, reason=error.text) from error
        try:
            card, after = self._find(deployable)
        except DriverError as error:
            raise LoadingFailed(image=image, reason=error.text) from error
        matches = (
            bitstream.function_id in _shell_ids(card)
            if bitstream.is_shell
            else self._matches(after, bitstream)
        )
        if not tool_result.status and not after.fault and matches:
            return
        # Tools print the path of the file, which must not reach a client.
        output = tool_result.summary.replace(str(file), 'the file')
        content = f'the card shows function {after.function_id or "none"}.'
        reason = after.fault or (output if tool_result.status else content)
        if after == before and before.function_id and not before.fault:
            raise DriverError(
                reason=f'Loading bitstream {image} failed, and nothing changed: '
                f'{reason}'
            )
        raise LoadingFailed(image=image, reason=reason)

    def _matches(self, region: FpgaRegion, bitstream: Bitstream) -> bool:
        """Return True if a region read after a load shows the bitstream."""
        return region.function_id == bitstream.function_id

    def _find(self, deployable: str) -> tuple[FpgaCard, FpgaRegion]:
        """Return the card and region of a deployable, read anew.

        :raises DriverError: it does not exist, cannot be used or is not a region
        """
        for function in self._host.pci_functions():
            root = f'{self._host.name}_{function.address}'
            if deployable != root and not deployable.startswith(f'{root}_'):
                continue
            if function.is_lost or not self.is_card_function(function):
                raise DeviceGone(address=function.address)
            card = self.read_card(function)
            if card.fault:
                raise DeviceBusy(address=function.address, reason=card.fault)
            name = deployable.removeprefix(root).removeprefix('_')
            for region in card.regions:
                if name == region.name or (not name and len(card.regions) == 1):
                    return card, region
            reason = f'{deployable} is not a region that can be loaded.'
            raise DriverError(reason=reason)
        raise DeviceGone(address=deployable.partition('_')[2])

    def _check_file(
        self, card: FpgaCard, region: FpgaRegion, image: Path, bitstream: Bitstream
    ) -> None:
        """Check that the card has the format and the driver that an image names.

        The header of the file must fit the region and the Glance image.

        :raises BitstreamRefused: it does not
        """
        handlers = choice.parse_handlers(self.describe_handlers(card))
        mismatches = choice.list_handler_mismatches(bitstream, handlers)
        reason = ' '.join(mismatches)
        reason = reason or self._find_mismatch(card, region, image, bitstream)
        if reason:
            raise BitstreamRefused(image=bitstream.image_id, reason=reason)

    def _find_mismatch(
        self, card: FpgaCard, region: FpgaRegion, image: Path, bitstream: Bitstream
    ) -> str:
        """Return why the header of a file does not fit; empty: it fits."""
        try:
            header = self.read_header(image, bitstream)
        except InvalidBitstreamFile as error:
            return str(error)
        except OSError:
            return 'The file cannot be read.'
        if bitstream.is_shell and not self.build_shell_command(card, image):
            return 'It is a shell; flash it by hand and power-cycle the host.'
        if not bitstream.is_shell and not self._fits(card, region, header):
            return (
                f'It is for interface {header.interface_id}; the interface of the '
                f'region is {region.interface_id or "unknown"}.'
            )
        if header.function_id != bitstream.function_id:
            return (
                f'The file contains function {header.function_id}, but the image '
                f'properties name {bitstream.function_id}.'
            )
        return ''

    def _fits(
        self, card: FpgaCard, region: FpgaRegion, header: BitstreamHeader
    ) -> bool:
        return bool(header.interface_id) and header.interface_id == region.interface_id


def _describe_blank(header: BitstreamHeader) -> Bitstream:
    """Return the bitstream of a file of the operator, of which no image exists."""
    return Bitstream(
        image_id='blank',
        name='blank',
        uuid='',
        vendor='',
        board='',
        version='',
        function_id=header.function_id,
        size=0,
        hash_algo='',
        hash_value='',  # the next bind loads its bitstream in any case
        shell_id='',
    )


def _shell_ids(card: FpgaCard) -> list[str]:
    return card.facts.get(bitstreams.SHELL, '').split()


def read_driver_versions(host: Host, names: Iterable[str]) -> dict[str, str]:
    """Return the version of each host driver by its name; loaded drivers come first.

    A driver of the kernel has no version of its own; the version of the kernel counts.

    :returns: empty versions for drivers that are not loaded
    """
    versions = {name: _read_driver_version(host, name) for name in names}
    return dict(sorted(versions.items(), key=lambda item: not item[1]))


def _read_driver_version(host: Host, name: str) -> str:
    module = f'sys/module/{name.replace("-", "_")}'
    version = host.text(f'{module}/version')
    # The taint O marks a module that is not part of the kernel.
    if version is None and 'O' not in (host.text(f'{module}/taint') or ''):
        is_loaded = host.has(module)
        version = host.text('proc/sys/kernel/osrelease') if is_loaded else None
    return version if version and _VERSION.fullmatch(version) else ''


def loading_options(tool: str) -> tuple[cfg.Opt, ...]:
    """Return the options of a driver with a loading tool.

    :param tool: default of the option ``tool``
    """
    return (
        *FPGA_OPTIONS,
        cfg.StrOpt(
            'tool',
            default=tool,
            help="""
Program that loads a bitstream into a card: a path, or the name of a tool in
/etc/cyborg-lite/privileges.d. Change it if the tool has another name in a
newer release of the vendor.
""",
        ),
        cfg.StrOpt(
            'blank_bitstream',
            default='',
            help="""
File with a bitstream without logic, which a cleaning run loads after each use.
The privileges file must allow its path. Without it a region that was used is
only given to ARQs that name a bitstream, which replaces the logic of the last
instance, unless `cleaning` is `never`. Set it if profiles name no bitstream.
""",
        ),
        cfg.IntOpt(
            'program_timeout',
            default=120,
            min=1,
            help="""
Maximum time in seconds for loading a bitstream. After this time the tool is
killed, and the region cannot be used until a bitstream is loaded into it.
Raise it for large cards, and [conductor] agent_timeout with it.
""",
        ),
        cfg.ListOpt(
            'setup_roles',
            default=[],
            item_type=types.String(regex=r'^[A-Za-z0-9][A-Za-z0-9_.+-]*$'),
            help="""
Set-up roles of this host that the property driver_path of an image may name. If
the host driver is too old for an image, the reason of the failed bind names the
role. The agent runs no role and downloads nothing. Set it if a role installs the
drivers that bitstreams need.
""",
        ),
    )
