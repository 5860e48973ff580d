# SPDX-License-Identifier: Apache-2.0
"""Layouts of equal namespaces on an NVMe controller, with ``nvme`` of nvme-cli.

The controller must support the namespace management of the NVM Express Base
Specification (Identify Controller: OACS bit 3, TNVMCAP, NN). A layout is made anew: it
destroys all data of the controller.
"""

import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from cyborg_lite.drivers.host import disk_use
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.host.tools import ToolRunner, run_or_raise
from cyborg_lite.drivers.nvme_cleaning import find_controller
from cyborg_lite.drivers.pci.card_modes import CardModes, DeclaredModes
from cyborg_lite.drivers.pci.functions import attributes, custom_name
from cyborg_lite.drivers.storage.nvme_ports import DrivePorts
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.modes import OfferedInventory, list_inventory
from cyborg_lite.model.inventory.host_report import Deployable, Device

_HOST_DRIVER: Final = 'nvme'
_SECONDS: Final = 120.0  # of one command
_SUPPORTED: Final = 0x8  # OACS
_GRANULE: Final = 1 << 30  # bytes; controllers allocate capacity in granules
_ALL: Final = '0xffffffff'  # namespace id for what is common to all namespaces
_NAME: Final = re.compile(r'namespaces-([1-9]\d?)')
_TRAIT: Final = custom_name('SSD', 'NAMESPACES', '')  # before the number
_COUNTS: Final = (1, 2, 4, 8)  # namespaces of the layouts that need no declaration
_SCAN_POLLS: Final = 100
_SCAN_SECONDS: Final = 0.1  # between two polls

# Any: values of JSON are of many types.
Identity = Mapping[str, Any]


def format_layout(count: int) -> str:
    """Return the name of a layout of equal namespaces."""
    return f'namespaces-{count}'


def parse_layout(name: str) -> int:
    """Return the number of namespaces of a layout; 0: the name is of no layout."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else 0


def count_namespaces(function: PciFunction) -> int:
    """Return the number of namespaces of a drive; 0 if their sizes differ."""
    disks = disk_use.list_namespaces(function)
    sizes = {function.host.number(f'{disk.path}/size') for disk in disks}
    return len(disks) if len(sizes) == 1 else 0


def read_layout(root: Deployable) -> int:
    """Return the number of namespaces in the traits of a deployable; 0: in none."""
    numbers = (item.removeprefix(_TRAIT) for item in root.traits if _TRAIT in item)
    return next((int(number) for number in numbers if number.isdecimal()), 0)


def replace_layout(root: Deployable, count: int) -> Deployable:
    """Return the deployable with the trait of a number of namespaces; 0: none."""
    if root.resource_class is None:
        return root
    traits = [trait for trait in root.traits if not trait.startswith(_TRAIT)]
    if count:
        traits.append(f'{_TRAIT}{count}')
    shared = attributes(root.resource_class, traits)
    return replace(root, traits=tuple(traits), attributes=shared)


class NamespaceModes(CardModes):
    """Layouts of the drives for which the operator declares one."""

    def __init__(
        self,
        run: ToolRunner,
        declared: DeclaredModes,
        ports: DrivePorts,
        poll_seconds: float = _SCAN_SECONDS,
    ) -> None:
        self._tool = run
        self._declared = declared
        self._ports = ports
        self._poll_seconds = poll_seconds

    def list_inventory(
        self, card: PciFunction, device: Device
    ) -> Mapping[str, Iterable[OfferedInventory]]:
        declared = self._declared.find(device)
        if declared is None or card.driver != _HOST_DRIVER:
            return {}
        if self._ports.find_obstacle(card.address) is not None:
            return {}
        counts = sorted({*_COUNTS, parse_layout(declared)} - {0})
        return {
            format_layout(count): list_inventory(replace_layout(device.root, count))
            for count in counts
        }

    def has_mode(self, card: PciFunction, mode: str) -> bool:
        """Return True if a drive has the namespaces of a mode, all of equal size."""
        count = parse_layout(mode)
        return count > 0 and count_namespaces(card) == count

    def is_possible(self, card: PciFunction, device: Device, mode: str) -> bool:
        """Return True if a mode is a layout; the drive shows later whether it fits."""
        return parse_layout(mode) > 0

    def set_mode(self, card: PciFunction, mode: str) -> None:
        """Replace the namespaces of a drive by equal ones, which destroys its data.

        :raises DeviceBusy: a guest has the drive, or may have it at another port
        :raises DriverError: the host uses it, it has no namespace management, or a
            command failed
        """
        obstacle = self._ports.find_obstacle(card.address)
        if obstacle is not None:
            raise DeviceBusy(address=card.address, reason=obstacle)
        controller, count = self._check_unused(card), parse_layout(mode)
        if count_namespaces(card) == count:
            return
        identity = self._read(controller, 'id-ctrl')
        size = _find_size(card.address, identity, count)
        number, block = self._find_format(controller)
        for namespace in self._list(controller, '--all'):
            self._run('delete-ns', controller, f'--namespace-id={namespace}')
        for _ in range(count):
            self._create(controller, size // block, number, int(identity['cntlid']))
        self._run('ns-rescan', controller)
        self._wait(card, count)

    def _check_unused(self, function: PciFunction) -> str:
        """Check that nobody uses a drive; return the device file of its controller."""
        controller = find_controller(function)
        disks = disk_use.list_namespaces(function)
        user = disk_use.find_storage_user(function)
        if user is not None:
            reason = f'Drive {function.address} is in use by the host: {user}.'
            raise DriverError(reason=reason)
        # The kernel may still be scanning. An interrupted change leaves a drive without
        # namespaces.
        if len(self._list(controller)) != len(disks):
            self._run('ns-rescan', controller)
            reason = 'its namespaces cannot be found'
            raise DeviceBusy(address=function.address, reason=reason)
        return controller

    def _find_format(self, controller: str) -> tuple[int, int]:
        """Return number and block size of the first format without metadata."""
        common = self._read(controller, 'id-ns', f'--namespace-id={_ALL}')
        for number, entry in enumerate(common.get('lbafs', ())):
            if int(entry['ms']) == 0 and int(entry['ds']):
                return number, 1 << int(entry['ds'])
        raise DriverError(reason=f'{controller} has no format without metadata.')

    def _create(self, controller: str, blocks: int, number: int, owner: int) -> None:
        sizes = f'--nsze={blocks}', f'--ncap={blocks}', f'--flbas={number}'
        output = self._run('create-ns', controller, *sizes)
        match = re.search(r'nsid:\s*(\d+)', output)
        if match is None:
            raise DriverError(reason=f'nvme create-ns {controller} shows no nsid.')
        options = f'--namespace-id={match[1]}', f'--controllers={owner}'
        self._run('attach-ns', controller, *options)

    def _list(self, controller: str, *options: str) -> list[int]:
        output = self._run('list-ns', controller, *options)
        return [int(text, 16) for text in re.findall(r'\]:\s*(0x[0-9a-f]+)', output)]

    def _read(self, controller: str, command: str, *options: str) -> Identity:
        output = self._run(command, controller, *options, '--output-format=json')
        try:
            identity: Identity = dict(json.loads(output))
        except ValueError:
            reason = f'nvme {command} {controller} returned no JSON.'
            raise DriverError(reason=reason) from None
        return identity

    def _run(self, *arguments: str) -> str:
        return run_or_raise(self._tool, ('nvme', *arguments), _SECONDS)

    def _wait(self, function: PciFunction, count: int) -> None:
        """Wait until the kernel shows the namespaces.

        :raises DriverError: it does not within ten seconds
        """
        pause = threading.Event()
        for _ in range(_SCAN_POLLS):
            if count_namespaces(PciFunction(function.host, function.address)) == count:
                return
            pause.wait(self._poll_seconds)
        reason = f'The kernel does not show {count} namespaces of {function.address}.'
        raise DriverError(reason=reason)


def _find_size(address: str, identity: Identity, count: int) -> int:
    """Return the size of each of equal namespaces in bytes.

    :raises DriverError: the controller cannot have ``count`` namespaces
    """
    if not int(identity.get('oacs', 0)) & _SUPPORTED:
        reason = f'Drive {address} does not support namespace management.'
        raise DriverError(reason=reason)
    capacity, limit = int(identity.get('tnvmcap', 0)), int(identity.get('nn', 0))
    size = capacity // count // _GRANULE * _GRANULE
    if count > limit or not size:
        reason = f'Drive {address} can have {limit} namespaces in {capacity} bytes.'
        raise DriverError(reason=reason)
    return size
