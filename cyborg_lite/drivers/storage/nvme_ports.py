# SPDX-License-Identifier: Apache-2.0
"""Drives with several controllers on one host, such as both ports of one drive.

All controllers of a drive have one serial number and one model (NVMe Base
Specification, Identify Controller, SN and MN). Two guests must not get one drive.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cyborg_lite.model.inventory.host_report import Deployable, Device, DiscoveryResult


class DrivePorts:
    """Offers each drive at one of its controllers and withholds the others."""

    def __init__(self, find_host_user: Callable[[str], str | None]) -> None:
        # Returns what on the host uses the function at an address.
        self._find_host_user = find_host_user
        self._current_ports: set[str] = set()  # addresses of offered controllers
        self._reasons: dict[str, str] = {}  # why not, by address

    def restore_device(self, device: Device) -> None:
        """Accept a device that an earlier agent process discovered."""
        if device.root.handles:
            self._current_ports.add(device.control_address)

    def resolve(self, results: Sequence[DiscoveryResult]) -> list[DiscoveryResult]:
        """Return the results of a scan with one offered controller per drive.

        The controller that is offered already stays; a guest may have the drive.
        """
        drives: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for result in results:
            device = result.device
            if device and device.hardware_id not in ('', result.address):
                drive = (device.vendor, device.model, device.hardware_id)
                drives[drive].append(result.address)
        self._reasons = {}
        for (*_, serial), ports in drives.items():
            if len(ports) > 1:
                self._withhold_ports(ports, serial)
        present = {result.address for result in results}
        resolved = [self._withhold(result) for result in results]
        self._current_ports |= set(_list_offered(resolved))
        self._current_ports &= present
        return resolved

    def find_obstacle(self, address: str) -> str | None:
        """Return why a controller is not offered beside others of its drive."""
        return self._reasons.get(address)

    def _withhold(self, result: DiscoveryResult) -> DiscoveryResult:
        device, reason = result.device, self._reasons.get(result.address)
        if reason is None or device is None or not device.root.handles:
            return result
        root = Deployable(device.root.name)
        device = replace(device, root=root, health_reason=reason)
        return replace(result, reason=reason, device=device)

    def _withhold_ports(self, ports: Sequence[str], serial: str) -> None:
        first, *further_ports = sorted(
            ports, key=lambda port: (port not in self._current_ports, port)
        )
        for port in further_ports:
            self._reasons[port] = f'same drive as {first}: serial number {serial}'
            # The first controller may be one on vfio-pci, which shows no user.
            user = self._find_host_user(port)
            if user is not None:
                self._reasons[first] = f'in use by the host through {port}: {user}'
        self._current_ports.difference_update(further_ports)


def _list_offered(results: Iterable[DiscoveryResult]) -> Iterable[str]:
    return (
        result.address
        for result in results
        if result.device is not None and result.device.root.handles
    )
