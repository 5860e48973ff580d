# SPDX-License-Identifier: Apache-2.0
"""Partitions of Fabric Manager, which connect the cards of one guest by NVLink.

Fabric Manager runs with ``FABRIC_MODE=1``. The tool is ``fmpm`` of NVIDIA
(github.com/NVIDIA/Fabric-Manager-Client): ``-l`` lists the partitions as JSON, ``-a``
activates and ``-d`` deactivates one of them.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from oslo_config import cfg, types

from cyborg_lite.drivers.host.kernel import Writer, last_line
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.function_groups import FunctionGroups, parse_group
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle

_TOOL: Final = 'usr/bin/fmpm'  # below the root of the host

FABRIC_PARTITIONS: Final = cfg.ListOpt(
    'fabric_partitions',
    default=[],
    item_type=types.String(regex=r'^\d{1,4}\s*=\s*[^+\s]+(\s*\+\s*[^+\s]+)*$'),
    help="""
Partitions of Fabric Manager that are offered, as `id = address + address`
entries with the PCI addresses of the cards. The cards of a partition are given
together, as with `groups`. The agent activates the partition with fmpm before
the instance starts, and deactivates it before the release. The partitions of a
host must not share cards. Example: 1 = 0000:1b:00.0 + 0000:43:00.0.
""",
)


class FabricGroups(FunctionGroups):
    """The groups of one host, some of which are partitions."""

    def __init__(
        self,
        host: Host,
        writer: Writer,
        texts: Iterable[str],
        partitions: Iterable[str],
    ) -> None:
        """Parse the groups, and the partitions as ``id = address + address`` entries.

        :raises ConfigurationError: as ``FunctionGroups``
        """
        pairs = [text.split('=') for text in partitions]
        super().__init__(host, [*texts, *(cards for _, cards in pairs)])
        self._writer = writer
        # By addresses.
        self._numbers = {parse_group(cards): int(number) for number, cards in pairs}

    def is_partition(self, function: PciFunction) -> bool:
        """Return True if the group of a function is a partition."""
        return tuple(self.find(function.address)) in self._numbers

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        """Activate the partition of a whole group, if it is an inactive one."""
        super().activate(members)
        self._set(members, '-a', is_active=True)

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        """Deactivate the partition of a group, if it is an active one."""
        self._set(members, '-d', is_active=False)

    def _set(
        self, members: Sequence[AllocatedHandle], flag: str, *, is_active: bool
    ) -> None:
        """Run the tool unless the partition has the state.

        :raises DeviceBusy: Fabric Manager refuses
        :raises DriverError: the tool cannot be run
        """
        group = tuple(self.find(members[0].control_address))
        number = self._numbers.get(group)
        if number is None or self._is_active(group[0], number) == is_active:
            return
        _, output = self._writer.run(group[0], _TOOL, flag, str(number))
        # The exit status of the tool is not documented.
        if self._is_active(group[0], number) != is_active:
            reason = f'fmpm {flag} {number} failed: {last_line(output)}'
            raise DeviceBusy(address=group[0], reason=reason)

    def _is_active(self, address: str, number: int) -> bool:
        _, output = self._writer.run(address, _TOOL, '-l')
        try:
            partitions = json.loads(output)['partitionInfo']
            active = {
                int(partition['partitionId']): bool(partition['isActive'])
                for partition in partitions
            }
            return active[number]
        except (KeyError, TypeError, ValueError):
            text = last_line(output)
            reason = f'fmpm -l does not show partition {number}: {text:.200}'
            raise DriverError(reason=f'Device {address}: {reason}') from None
