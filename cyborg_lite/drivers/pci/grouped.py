# SPDX-License-Identifier: Apache-2.0
"""Groups of whole PCI functions that an instance gets together.

The first function of a group is its device, with a unit for each function. Placement
allocates all units or none. The agent activates the group with its exact members.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from cyborg_lite.drivers.host import disk_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.function_groups import FunctionGroups
from cyborg_lite.drivers.pci.functions import (
    PciDriver,
    attributes,
    custom_name,
    handle_address,
    name_companion,
)
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model import typed_attributes
from cyborg_lite.model.attribute_keys import GROUP_SIZE
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.model.inventory import (
    AttachHandle,
    Deployable,
    DiscoveryResult,
    HandleType,
    Health,
)
from cyborg_lite.model.typed_attributes import AttributeDeclaration, TypedAttribute


class GroupedPciDriver(PciDriver):
    """Base of drivers with the option ``groups``; put it before other bases."""

    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        *PciDriver.ATTRIBUTES,
        typed_attributes.SAME_CARD,
        typed_attributes.SAME_NUMA_NODE,
    )

    # Any: each option has its own type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self._function_groups = FunctionGroups(self.list_group_texts())

    def list_group_texts(self) -> Sequence[str]:
        """Return the groups that the options declare."""
        return tuple(self._options.get('groups', ()))

    def find_group(self, handle: AllocatedHandle) -> str:
        """Return the address of the device of a group; empty: no unit of a group."""
        address = handle_address(handle.info)
        if handle.type != HandleType.PCI or handle.key != address:
            return ''
        return next(iter(self._function_groups.find(address)), '')

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        """Check that the members are a whole group, then activate it.

        :raises DriverError: a function of the group is missing, or it cannot be
            activated
        """
        addresses = {handle_address(member.info) for member in members}
        group = self._function_groups.find(members[0].control_address)
        if addresses != set(group):
            reason = (
                f'{", ".join(sorted(addresses))} are not the functions of a group: '
                f'{", ".join(group) or "none"}.'
            )
            raise DriverError(reason=reason)
        self.connect_group(group)

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        """Deactivate a group."""
        group = self._function_groups.find(members[0].control_address)
        if group:
            self.disconnect_group(group)

    def connect_group(self, group: Sequence[str]) -> None:
        """Connect the functions of a group; most groups need nothing.

        Must be idempotent.

        :param group: the addresses, in the order of the option
        :raises DriverError: it failed, and nothing has changed
        """

    def disconnect_group(self, group: Sequence[str]) -> None:
        """Undo ``connect_group``. Must be idempotent.

        :raises DriverError: it failed; the agent retries
        """

    def classify(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function; a group is one device."""
        group = self._function_groups.find(function.address)
        if not group or not self.is_own_vendor(function):
            return super().classify(function)
        if function.address == group[0]:
            return self._classify_group(function, group)
        reason = f'guests get it together with {group[0]}'
        if self.is_card_function(function):
            return self.build_withheld(function, reason)
        return self.build_result(function, reason)

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        """Yield the typed attributes of a card, and what its group shares."""
        yield from super().list_attributes(function)
        group = self._function_groups.find(function.address)
        if not group:
            return
        slots = {address.rpartition('.')[0] for address in group}
        yield typed_attributes.SAME_CARD.of(len(slots) == 1)
        nodes = {member.numa_node for member in self._list_members(group)}
        if None not in nodes:
            yield typed_attributes.SAME_NUMA_NODE.of(len(nodes) == 1)

    def build_whole(self, function: PciFunction) -> Deployable:
        """Return the deployable of a card, or of the group that it begins."""
        root = super().build_whole(function)
        members = self._list_members(self._function_groups.find(function.address))
        if not members:
            return root
        traits = dict.fromkeys(root.traits)
        for member in members:
            traits |= dict.fromkeys(self._list_member_traits(member))
        handles = tuple(self._build_member(function, member) for member in members)
        shared = attributes(self.resource_class(function), tuple(traits))
        return replace(
            root,
            total=len(handles),
            traits=tuple(traits),
            handles=handles,
            attributes={**shared, GROUP_SIZE: str(len(handles))},
        )

    def list_together(self, function: PciFunction) -> Sequence[str]:
        """Return the addresses of the functions in the group of a function."""
        return self._function_groups.find(function.address)

    def find_whole_obstacle(self, function: PciFunction) -> str | None:
        """Return why no guest can get the whole card, or None if one can."""
        if function.is_virtual:
            return 'a virtual function'
        return 'it has virtual functions' if function.virtfns else None

    def _classify_group(
        self, card: PciFunction, group: Sequence[str]
    ) -> DiscoveryResult:
        members = self._list_members(group)
        for member in members:
            fault = self._find_member_fault(member)
            if fault is not None:
                return self._build_lost_group(card, _describe(card, member, fault))
        for member in members:
            obstacle = self._find_member_obstacle(member)
            if obstacle is not None:
                reason = _describe(card, member, obstacle)
                return self.build_withheld(card, reason)
        device = self.build_device(card, self.build_whole(card))
        members_text = ', '.join(group[1:])
        reason = (
            f'together with {members_text}' if members_text else 'a group of its own'
        )
        return self.build_result(card, reason, device)

    def _build_lost_group(self, card: PciFunction, reason: str) -> DiscoveryResult:
        last = self._last_results.get(card.address)
        root = self.build_whole(card)
        if last is not None and last.device is not None:
            # The traits of a missing function are those of the last scan.
            root = last.device.root if last.device.root.total else root
        device = self.build_device(card, replace(root, reserved=root.total))
        device = replace(device, health=Health.FAILED, health_reason=reason)
        return self.build_result(card, reason, device)

    def _list_members(self, group: Sequence[str]) -> list[PciFunction]:
        return [PciFunction(self._host, address) for address in group]

    def _is_card(self, member: PciFunction) -> bool:
        return self.is_own_vendor(member) and self.is_card_function(member)

    def _find_member_fault(self, member: PciFunction) -> str | None:
        if not member.is_present:
            return 'it is missing'
        if member.is_lost:
            return 'lost: its config space reads all ones'
        return self.find_fault(member) if self._is_card(member) else None

    def _find_member_obstacle(self, member: PciFunction) -> str | None:
        if not self._is_card(member):
            return self._find_companion_obstacle(member)
        if member.is_boot_vga:
            return 'boot VGA of the host'
        return self.find_whole_obstacle(member) or self.find_obstacle(member)

    def _find_companion_obstacle(self, member: PciFunction) -> str | None:
        """Return why a function beside a card cannot be in its group, or None.

        It needs no reset of its own: vfio-pci resets the whole slot after the last
        function is closed (kernel: vfio_pci_core.c, vfio_pci_dev_set_try_reset).
        """
        group = self._function_groups.find(member.address)
        beside = {sibling.address for sibling in member.siblings} & set(group)
        cards = self._list_members(sorted(beside))
        if not self.is_own_vendor(member) or not any(map(self._is_card, cards)):
            return 'it is neither a card of this driver nor beside such a card'
        user = disk_use.find_storage_user(member)
        return (
            f'in use by the host: {user}' if user else self.find_group_obstacle(member)
        )

    def _build_member(self, card: PciFunction, member: PciFunction) -> AttachHandle:
        owner = member if self._is_card(member) else card
        return replace(self.build_handle(owner, member), needs_host=True)

    def _list_member_traits(self, member: PciFunction) -> Sequence[str]:
        if not member.is_present:
            return ()
        if self._is_card(member):
            return self.traits(member)
        return (custom_name('WITH', name_companion(member)),)


def _describe(card: PciFunction, member: PciFunction, reason: str) -> str:
    return reason if member == card else f'{member.address}: {reason}'
