# SPDX-License-Identifier: Apache-2.0
"""NVMe drives of any vendor, given to a guest as a whole and erased afterwards."""

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import ClassVar, Final

from oslo_config import cfg
from oslo_log import log

from cyborg_lite.drivers import nvme_cleaning
from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host import disk_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.telemetry import CachedReadings, Readings
from cyborg_lite.drivers.host.tools import ToolRunner, Tools, run_or_raise
from cyborg_lite.drivers.nvme_cleaning import CleanMethod, NvmeCleaner, find_controller
from cyborg_lite.drivers.pci.card_modes import MODES_OPTION, ModesPciDriver
from cyborg_lite.drivers.pci.cards import cleaning_option
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.storage.nvme_namespaces import (
    NamespaceModes,
    count_namespaces,
    read_layout,
    replace_layout,
)
from cyborg_lite.drivers.storage.nvme_ports import DrivePorts
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import (
    CleaningPolicy,
    Deployable,
    Device,
    DiscoveryResult,
    Health,
)
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    TypedAttribute,
)

LOG = log.getLogger(__name__)

_INTERVAL: Final = 600.0  # seconds; the log changes slowly
_SECONDS: Final = 60.0  # limit of the tool
# Bits of Critical Warning.
_WARNINGS: Final = (
    'smart_spare_low',
    'smart_temperature',
    'smart_reliability',
    'smart_read_only',
    'smart_backup_failed',
)
_FIELDS: Final = {
    'smart_percentage_used': 'percent_used',
    'smart_media_errors': 'media_errors',
}
SMART_SIGNALS: Final = (*_WARNINGS, *_FIELDS)


class SmartLog:
    """Reads the SMART logs of drives with nvme-cli, in the background.

    See the NVMe Base Specification, SMART / Health Information.
    """

    def __init__(self, host: Host, run: ToolRunner) -> None:
        self._host = host
        self._run = run
        self._cache = CachedReadings(self._read, _INTERVAL)

    def read_counters(self, address: str) -> dict[str, int]:
        """Return the signals of the last log; empty if it cannot be read."""
        readings = self._cache.readings(address)
        return {name: int(value) for name, value in readings.items()}

    def _read(self, address: str) -> Readings:
        try:
            controller = find_controller(PciFunction(self._host, address))
            command = ('nvme', 'smart-log', controller, '--output-format=json')
            return parse_log(run_or_raise(self._run, command, _SECONDS))
        except (DriverError, ValueError) as error:
            LOG.debug('Cannot read the SMART log of %s: %s', address, error)
            return {}


def parse_log(text: str) -> Readings:
    """Return the signals in the output of ``nvme smart-log``.

    :raises ValueError: it has another form
    """
    log_page = json.loads(text)
    try:
        warnings = int(log_page['critical_warning'])
        numbers = {name: int(log_page[key]) for name, key in _FIELDS.items()}
    except (KeyError, TypeError) as error:
        raise ValueError(f'the SMART log lacks {error}') from None
    bits = {name: warnings >> bit & 1 for bit, name in enumerate(_WARNINGS)}
    return {**bits, **numbers}


_HOST_DRIVER: Final = 'nvme'
# Eight ASCII characters (NVMe Base Specification, Identify Controller, FR).
_FIRMWARE: Final = re.compile(r'[!-~][ -~]{0,7}')


_DRIVES: Final = cfg.ListOpt(
    'drives',
    default=[],
    help="""
Drives that guests may get, by serial number or PCI address; `*` and `?` match any
text and any character. The agent offers, erases and changes no other drive. Name
only drives whose data may be destroyed. `cyborg-lite-agent discover` shows the
addresses, and `/sys/class/nvme/*/serial` the serial numbers.
""",
)


class NvmeDrive(ModesPciDriver):
    """Driver for NVMe drives."""

    NAME: ClassVar[str] = 'nvme_driver'
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = (_HOST_DRIVER,)
    KEEPS_MODES: ClassVar[bool] = True
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *(option for option in PciDriver.OPTIONS if option.dest != 'cleaning'),
        cleaning_option(CleaningPolicy.AFTER_USE),
        *nvme_cleaning.OPTIONS,
        MODES_OPTION,
        _DRIVES,
    )
    SIGNALS: ClassVar[Sequence[str]] = (*PciDriver.SIGNALS, *SMART_SIGNALS)
    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        *PciDriver.ATTRIBUTES,
        typed_attributes.FIRMWARE,
    )

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self._patterns = tuple(item.lower() for item in options.get('drives', ()))
        method = CleanMethod(options.get('clean_method', CleanMethod.AUTO))
        tools = Tools(host.kernel)
        self.cleaner = NvmeCleaner(tools, method)
        self._smart = SmartLog(host, tools)
        self._ports = DrivePorts(
            lambda address: self.find_host_user(PciFunction(host, address))
        )
        self.card_modes = NamespaceModes(tools, self.declared_modes, self._ports)
        # The last number of namespaces, by address. A drive in a guest has none.
        self._counts: dict[str, int] = {}

    def discover(self) -> Iterator[DiscoveryResult]:
        """Yield one result per controller; a drive is offered at one of them."""
        yield from self._ports.resolve(list(super().discover()))

    def build_device(
        self,
        function: PciFunction,
        root: Deployable,
        health: Health = Health.OK,
        reason: str = '',
    ) -> Device:
        """Return the device of a drive; a trait shows the layout of a declared one."""
        device = super().build_device(function, root, health, reason)
        if root.resource_class is None or self.declared_modes.find(device) is None:
            return device
        if function.driver == _HOST_DRIVER:
            self._counts[function.address] = count_namespaces(function)
        count = self._counts.get(function.address, 0)
        return replace(device, root=replace_layout(device.root, count))

    def restore_device(self, device: Device) -> None:
        super().restore_device(device)
        self._ports.restore_device(device)
        if device.hardware_id != device.control_address:
            # Needed while the drive is in a guest: other controllers have it, too.
            ids = f'{device.vendor}:{device.std_board_info.get("product_id", "")}'
            self.memory.serials[device.control_address, ids] = device.hardware_id
        count = read_layout(device.root)
        if count:
            self._counts[device.control_address] = count

    def read_usage(self, device: Device) -> Usage:
        """Return the telemetry of a drive, with its SMART log while it is offered."""
        usage = super().read_usage(device)
        if not device.root.total:
            return usage
        log_page = self._smart.read_counters(device.control_address)
        return replace(usage, counters={**usage.counters, **log_page})

    def set_mode(self, device: Device, mode: str) -> Device:
        self._find_selected(device.control_address)
        return super().set_mode(device, mode)

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        return self.cleaner.list_steps(self._find_selected(handle.control_address))

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        """Erase the drive; no step can be aborted."""
        function = self._find_selected(handle.control_address)
        return self.cleaner.run_step(function, name)

    def _find_selected(self, address: str) -> PciFunction:
        """Return the function of a drive that the operator has selected.

        :raises DriverError: the operator has not selected it
        """
        function = PciFunction(self._host, address)
        obstacle = self._find_missing_selection(function)
        if obstacle is not None:
            raise DriverError(reason=f'Drive {address} is not changed: {obstacle}.')
        return function

    def _find_missing_selection(self, function: PciFunction) -> str | None:
        """Return that the operator has not selected a drive, or None."""
        names = {function.address, self.hardware_id(function)}
        if any(
            fnmatchcase(name.lower(), pattern)
            for name in names
            for pattern in self._patterns
        ):
            return None
        serial = ', '.join(sorted(names - {function.address}))
        return f'[nvme_driver] drives lacks {serial or function.address}'

    def is_own_vendor(self, function: PciFunction) -> bool:
        return True

    def find_obstacle(self, function: PciFunction) -> str | None:
        return self._find_missing_selection(function) or super().find_obstacle(function)

    def classify_companion(self, function: PciFunction) -> DiscoveryResult | None:
        """Return None: other functions belong to other drivers."""
        return None

    def read_serial(self, function: PciFunction) -> str | None:
        """Return the serial number, which the host driver shows while bound."""
        for controller in function.names('nvme'):
            return function.text(f'nvme/{controller}/serial')
        return None

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        yield from super().list_attributes(function)
        for controller in function.names('nvme'):
            revision = function.text(f'nvme/{controller}/firmware_rev') or ''
            if _FIRMWARE.fullmatch(revision):
                yield typed_attributes.FIRMWARE.of(revision)
                return

    def find_fault(self, function: PciFunction) -> str | None:
        for controller in function.names('nvme'):
            if function.text(f'nvme/{controller}/state') in ('dead', 'deleting'):
                return f'the controller {controller} is dead'
        return None

    def find_host_user(self, function: PciFunction) -> str | None:
        if function.driver != _HOST_DRIVER:
            return disk_use.find_root_obstacle(self._host)
        disks = disk_use.list_namespaces(function)
        if not disks:
            # A drive whose content is unknown may be the system disk.
            return 'its namespaces cannot be found'
        return disk_use.find_disk_user(disks)
