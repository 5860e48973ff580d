# SPDX-License-Identifier: Apache-2.0
"""Devices that are not ours alone: those left to others, and those Nova claims."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from oslo_log import log

from cyborg_lite.drivers.sysfs import Host, PciFunction, pci_address
from cyborg_lite.model import nova_config
from cyborg_lite.model.inventory import Device, Finding, Health
from cyborg_lite.model.nova_config import Function, NovaConfig

LOG = log.getLogger(__name__)

_TYPES: Final = 'mdev_supported_types'
_LONGEST_REASON: Final = 255

# Of each file: its path, and what changes whenever its content does.
_State: TypeAlias = tuple[tuple[Path, int, int], ...]


class Ownership:
    """Reads Nova's configuration again whenever it was changed."""

    def __init__(
        self, host: Host, nova_files: Sequence[str], left: Collection[str]
    ) -> None:
        """:param nova_files: files, and directories whose ``*.conf`` are read
        :param left: addresses and ``vendor:device`` of what is none of our business
        """
        self._host = host
        self._nova_files = nova_files
        self._left = frozenset(each.lower() for each in left)
        self._config = NovaConfig()
        self._state: _State | None = None  # None: nothing was read yet
        self._said: dict[str, str] = {}  # by address, what was logged last

    def amended(self, finding: Finding) -> Finding:
        """The finding of a driver, with the word of the operator."""
        device = finding.device
        if device is None:
            return finding
        if self._left & {finding.address.lower(), finding.ids.lower()}:
            reason = 'left to others by [agent] excluded_devices'
            return replace(finding, reason=reason, device=None)
        reason = self._conflict(device) if self._nova_files else ''
        self._say(device, reason)
        if not reason:
            return finding
        contested = replace(device, health=Health.CONFLICT, health_reason=reason)
        return replace(finding, device=contested)

    def _conflict(self, device: Device) -> str:
        """Both who manage it; empty: only we do."""
        claim = self._nova().claim(self._functions(device))
        if claim is None:
            return ''
        return (
            f'Managed twice: by driver {device.driver} of this service, and by Nova, '
            f'whose configuration has {claim.source}'
        )[:_LONGEST_REASON]

    def _say(self, device: Device, reason: str) -> None:
        if reason == self._said.get(device.address, ''):
            return
        self._said[device.address] = reason
        if reason:
            LOG.warning('%s is not offered. %s', device.address, reason)
        else:
            LOG.info('%s is offered again: Nova leaves it alone.', device.address)

    def _functions(self, device: Device) -> Iterator[Function]:
        """All that the device is and consists of, as Nova's PCI tracker sees it."""
        keys = (unit.key for part in device.root.walk() for unit in part.units)
        addresses = {device.address, *(key.partition('/')[0] for key in keys)}
        for address in sorted(addresses):
            if pci_address(address) is not None:
                yield self._function(PciFunction(self._host, address), device)

    def _function(self, function: PciFunction, device: Device) -> Function:
        parent = function.physfn
        interfaces = set(function.names('net'))
        if parent is not None:
            interfaces |= set(PciFunction(self._host, parent).names('net'))
        return Function(
            address=function.address,
            vendor=function.vendor or device.vendor,
            product=function.device or device.std_board_info.get('product_id', '0'),
            parent=parent,
            interfaces=frozenset(interfaces),
            mdev_types=frozenset(function.names(_TYPES)),
        )

    def _nova(self) -> NovaConfig:
        files = list(self._files())
        state = tuple(_state(path) for path in files)
        if state != self._state:
            self._state = state
            self._config = nova_config.read(map(_text, files))
            for mistake in self._config.mistakes:
                LOG.warning('Nova is told something without sense: %s', mistake)
        return self._config

    def _files(self) -> Iterator[Path]:
        for name in self._nova_files:
            path = Path(name)
            yield from sorted(path.glob('*.conf')) if path.is_dir() else [path]


def _state(path: Path) -> tuple[Path, int, int]:
    try:
        seen = path.stat()
    except OSError:
        return path, 0, 0
    return path, seen.st_mtime_ns, seen.st_size


def _text(path: Path) -> str:
    try:
        return path.read_text(errors='replace')
    except OSError as error:
        LOG.warning(
            'Whether Nova has devices of this service too is not known: %s', error
        )
        return ''
