# SPDX-License-Identifier: Apache-2.0
"""Partitions of Fabric Manager, which connect the cards of one guest by NVLink.

Fabric Manager runs with ``FABRIC_MODE=1``. The tool is ``fmpm`` of NVIDIA
(github.com/NVIDIA/Fabric-Manager-Client): ``-l`` lists the partitions as JSON, ``-a``
activates and ``-d`` deactivates one of them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from oslo_config import cfg, types

from cyborg_lite.drivers.host.kernel import Writer, last_line
from cyborg_lite.drivers.pci.function_groups import parse_group
from cyborg_lite.errors.drivers import DeviceBusy, DriverError

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


class FabricGroups:
    """The partitions that the operator declares for one host."""

    def __init__(self, writer: Writer, texts: Iterable[str] = ()) -> None:
        """Parse ``id = address + address`` entries.

        :raises ConfigurationError: a text has no PCI address
        """
        self._writer = writer
        self._numbers: Mapping[Sequence[str], int] = {}  # by addresses
        for text in texts:
            number, _, group = text.partition('=')
            self._numbers = {**self._numbers, parse_group(group): int(number)}

    def has_group(self, group: Sequence[str]) -> bool:
        """Return True if a group of cards is a partition."""
        return tuple(group) in self._numbers

    def activate(self, group: Sequence[str]) -> None:
        """Activate the partition of a group of cards, if it is an inactive one."""
        self._set(group, '-a', is_active=True)

    def deactivate(self, group: Sequence[str]) -> None:
        """Deactivate the partition of a group of cards, if it is an active one."""
        self._set(group, '-d', is_active=False)

    def _set(self, group: Sequence[str], flag: str, *, is_active: bool) -> None:
        """Run the tool unless the partition has the state.

        :raises DeviceBusy: Fabric Manager refuses
        :raises DriverError: the tool cannot be run
        """
        number = self._numbers.get(tuple(group))
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
