# SPDX-License-Identifier: Apache-2.0
"""Finds devices that the agent must change on the host, but is not allowed to.

Without this check the first bind, clean or mode change of the device would fail.
"""

from dataclasses import replace
from typing import Final

from oslo_log import log

from cyborg_lite.drivers.host import privileges
from cyborg_lite.drivers.host.kernel import PCI_DEVICES, PrivilegedKernel
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import (
    NO_PRIVILEGES,
    CleaningPolicy,
    Device,
    DiscoveryResult,
    Health,
)

LOG = log.getLogger(__name__)

_ADVICE: Final = 'install the privileges file of {driver} in /{directory}.'


class PrivilegeCheck:
    """Marks devices for which no privileges file has a line."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._logged: frozenset[str] = frozenset()  # addresses
        self._version: object = None  # of the files that were read
        self._privileges = privileges.Privileges()

    def amend(self, result: DiscoveryResult) -> DiscoveryResult:
        """Return the result; a device without privileges is degraded.

        A device with another fault keeps its reason. Only a PCI function has lines.
        """
        device, address = result.device, result.address
        if device is None or not _needs_privileges(device) or self._is_allowed(address):
            self._logged -= {address}
            return result
        directory = privileges.DIRECTORY
        advice = _ADVICE.format(driver=result.driver, directory=directory)
        reason = f'{NO_PRIVILEGES}: {advice}'
        if address not in self._logged:
            LOG.warning('Device %s: %s', address, reason)
            self._logged |= {address}
        if device.health is not Health.OK:
            return result
        degraded = replace(device, health=Health.DEGRADED, health_reason=reason)
        return replace(result, device=degraded)

    def _is_allowed(self, address: str) -> bool:
        root = self._host.root
        if not isinstance(self._host.kernel, PrivilegedKernel):
            return True  # an emulation, which needs no privileges
        if not (root / PCI_DEVICES / address).exists():
            return True
        self._load()
        return self._privileges.contain_card(address)

    def _load(self) -> None:
        """Read the files if they have changed; an unreadable one allows nothing."""
        directory = self._host.root / privileges.DIRECTORY
        try:
            files = sorted(directory.iterdir()) if directory.is_dir() else []
            version = [(file.name, file.stat().st_ctime_ns) for file in files]
        except OSError:  # the next scan reads them again
            self._version, self._privileges = None, privileges.Privileges()
            return
        if version != self._version:
            self._version = version
            self._privileges = privileges.load(str(self._host.root))


def _needs_privileges(device: Device) -> bool:
    handles = [handle for item in device.root.walk() for handle in item.handles]
    return any(
        handle.needs_host or handle.cleaning is not CleaningPolicy.NEVER
        for handle in handles
    )
