# SPDX-License-Identifier: Apache-2.0
"""PCI functions that the operator offers together, such as both ports of a card.

The first function of a group is its device, with a unit for each function. Placement
allocates all units or none. The agent activates the group with its exact members.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from oslo_config import cfg, types

from cyborg_lite.drivers.host.sysfs import Host, PciFunction, pci_address
from cyborg_lite.drivers.pci.functions import handle_address
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import HandleType
from cyborg_lite.model.inventory.typed_attributes import TypedAttribute

GROUPS_OPTION: Final = cfg.ListOpt(
    'groups',
    default=[],
    item_type=types.String(regex=r'^[^+\s]+(\s*\+\s*[^+\s]+)+$'),
    help="""
PCI functions that an instance gets together or not at all, as
`address + address` entries. The first address is the one of a card of this
driver, under which the group is one device. The others are further cards of
this driver, or functions beside one of them such as the audio function of a
GPU. A device profile requests the number of functions, such as
resources:PGPU=2. Change it only while no instance uses one of the functions.
Example: 0000:3b:00.0 + 0000:3b:00.1.
""",
)
GROUP_ATTRIBUTES: Final = (typed_attributes.SAME_CARD, typed_attributes.SAME_NUMA_NODE)


class FunctionGroups:
    """The groups of one driver; most drivers have none."""

    def __init__(self, host: Host, texts: Iterable[str] = ()) -> None:
        """Parse ``address + address`` entries.

        :raises ConfigurationError: a text has no address, or a function has two groups
        """
        self._host = host
        self._groups: Mapping[str, Sequence[str]] = {}
        for text in texts:
            members = parse_group(text)
            repeated = [item for item in members if item in self._groups]
            if repeated or len(set(members)) < len(members):
                reason = f'"{text}" has a PCI function of another group, or one twice.'
                raise ConfigurationError(reason=reason)
            self._groups = {**self._groups, **dict.fromkeys(members, members)}

    def find(self, address: str) -> Sequence[str]:
        """Return the addresses of the group of a function; empty: it has none."""
        return self._groups.get(address, ())

    def list_members(self, function: PciFunction) -> list[PciFunction]:
        """Return the functions of the group of a function; empty: it has none."""
        group = self.find(function.address)
        return [PciFunction(self._host, address) for address in group]

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        """Yield what the functions of a group share."""
        members = self.list_members(function)
        if not members:
            return
        slots = {member.address.rpartition('.')[0] for member in members}
        yield typed_attributes.SAME_CARD.of(len(slots) == 1)
        nodes = {member.numa_node for member in members}
        if None not in nodes:
            yield typed_attributes.SAME_NUMA_NODE.of(len(nodes) == 1)

    def find_group(self, handle: AllocatedHandle) -> str:
        """Return the address of the device of a group; empty: no unit of a group."""
        address = handle_address(handle.info)
        if handle.type != HandleType.PCI or handle.key != address:
            return ''
        return next(iter(self.find(address)), '')

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        """Check that the members are a whole group; vfio needs nothing else.

        :raises DriverError: a function of the group is missing
        """
        addresses = {handle_address(member.info) for member in members}
        group = self.find(members[0].control_address)
        if addresses != set(group):
            reason = (
                f'{", ".join(sorted(addresses))} are not the functions of a group: '
                f'{", ".join(group) or "none"}.'
            )
            raise DriverError(reason=reason)

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        """Do nothing: ``activate`` changes nothing."""


def parse_group(text: str) -> tuple[str, ...]:
    """Return the addresses in a text such as ``3b:00.0 + 3b:00.1``.

    :raises ConfigurationError: one of them is no PCI address
    """
    members = []
    for member in text.split('+'):
        address = pci_address(member.strip().lower())
        if address is None:
            reason = f'{member.strip()} in "{text}" is not a PCI address.'
            raise ConfigurationError(reason=reason)
        members.append(address)
    return tuple(members)
