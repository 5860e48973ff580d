# SPDX-License-Identifier: Apache-2.0
"""Excludes devices that the operator reserved, and marks devices that Nova claims."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from oslo_log import log

from cyborg_lite.drivers.host.sysfs import Host, PciFunction, pci_address
from cyborg_lite.model import nova_config
from cyborg_lite.model.inventory import Device, DiscoveryResult, Health
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.nova_config import NovaConfig, NovaPciFunction

LOG = log.getLogger(__name__)

_MDEV_TYPES: Final = 'mdev_supported_types'

# Path, modification time in nanoseconds and size of each file.
_FilesState: TypeAlias = tuple[tuple[Path, int, int], ...]


class Ownership:
    """Compares devices with excluded_devices and with the configuration of Nova.

    The files of Nova are read again after each change.
    """

    def __init__(
        self, host: Host, nova_files: Sequence[str], excluded: Collection[str]
    ) -> None:
        """Store the arguments.

        :param nova_files: files, and directories whose ``*.conf`` files are read
        :param excluded: PCI addresses and ``vendor:device`` ids of excluded devices
        """
        self._host = host
        self._nova_files = nova_files
        self._excluded = frozenset(entry.lower() for entry in excluded)
        self._config = NovaConfig()
        self._state: _FilesState | None = None  # None: not read yet
        self._logged_reasons: dict[str, str] = {}  # by address

    def amend(self, result: DiscoveryResult) -> DiscoveryResult:
        """Remove an excluded device, or mark a device that Nova claims."""
        device = result.device
        if device is None:
            return result
        if self._excluded & {result.address.lower(), result.ids.lower()}:
            reason = 'excluded by [agent] excluded_devices'
            return replace(result, reason=reason, device=None)
        reason = self._find_conflict(device) if self._nova_files else ''
        self._log_conflict(device, reason)
        if not reason:
            return result
        conflicting = replace(device, health=Health.CONFLICT, health_reason=reason)
        return replace(result, device=conflicting)

    def _find_conflict(self, device: Device) -> str:
        """Return the reason if Nova claims the device as well, or an empty string."""
        claim = self._load_nova_config().find_claim(self._functions(device))
        if claim is None:
            return ''
        return (
            f'Managed twice: by driver {device.driver} of this service, and by Nova, '
            f'whose configuration contains {claim.source}'
        )[:REASON_MAX_LENGTH]

    def _log_conflict(self, device: Device, reason: str) -> None:
        if reason == self._logged_reasons.get(device.control_address, ''):
            return
        self._logged_reasons[device.control_address] = reason
        if reason:
            LOG.warning('Device %s is not offered. %s', device.control_address, reason)
        else:
            LOG.info(
                'Device %s is offered again: Nova does not claim it any more',
                device.control_address,
            )

    def _functions(self, device: Device) -> Iterator[NovaPciFunction]:
        """Yield the PCI functions of a device, as the PCI tracker of Nova sees them."""
        keys = (unit.key for part in device.root.walk() for unit in part.handles)
        addresses = {device.control_address, *(key.partition('/')[0] for key in keys)}
        for address in sorted(addresses):
            if pci_address(address) is not None:
                yield self._to_nova_function(PciFunction(self._host, address), device)

    def _to_nova_function(
        self, function: PciFunction, device: Device
    ) -> NovaPciFunction:
        parent = function.physfn
        interfaces = set(function.names('net'))
        if parent is not None:
            interfaces |= set(PciFunction(self._host, parent).names('net'))
        return NovaPciFunction(
            address=function.address,
            vendor=function.vendor or device.vendor,
            product=function.device or device.std_board_info.get('product_id', '0'),
            parent=parent,
            interfaces=frozenset(interfaces),
            mdev_types=frozenset(function.names(_MDEV_TYPES)),
        )

    def _load_nova_config(self) -> NovaConfig:
        files = list(self._list_files())
        state = tuple(_file_state(path) for path in files)
        if state != self._state:
            self._state = state
            self._config = nova_config.parse_nova_config(map(_read_text, files))
            for mistake in self._config.mistakes:
                LOG.warning('Ignoring invalid entry in nova.conf: %s', mistake)
        return self._config

    def _list_files(self) -> Iterator[Path]:
        for name in self._nova_files:
            path = Path(name)
            yield from sorted(path.glob('*.conf')) if path.is_dir() else [path]


def _file_state(path: Path) -> tuple[Path, int, int]:
    try:
        status = path.stat()
    except OSError:
        return path, 0, 0
    return path, status.st_mtime_ns, status.st_size


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors='replace')
    except OSError as error:
        LOG.warning(
            'Cannot read a configuration file of Nova; devices that Nova uses may be '
            'offered: %s',
            error,
        )
        return ''
