# SPDX-License-Identifier: Apache-2.0
"""Offer of whole PCI functions that an instance gets together."""

from cyborg_lite.drivers.host import disk_use
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.pci.cards import BOOT_VGA, LOST, PciCards
from cyborg_lite.model.inventory.host_report import DiscoveryResult


class GroupOffer:
    """Offers each group of a driver as the device of its first function."""

    def __init__(self, cards: PciCards) -> None:
        self._cards = cards

    def classify(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function of a group; None: it has no group."""
        first = next(iter(self._cards.groups.find(function.address)), None)
        if first is None:
            return None
        if function.address == first:
            return self._classify_group(function)
        reason = f'guests get it together with {first}'
        if self._cards.is_card_function(function):
            return self._cards.build_withheld(function, reason)
        return self._cards.build_result(function, reason)

    def _classify_group(self, card: PciFunction) -> DiscoveryResult:
        members = self._cards.groups.list_members(card)
        for member in members:
            fault = self._find_member_fault(member)
            if fault is not None:
                # The traits of a missing function are those of the last scan.
                last = self._cards.memory.results.get(card.address)
                root = last.device.root if last is not None and last.device else None
                if root is None or not root.total:
                    root = self._cards.build_whole(card)
                reason = _describe_member(card, member, fault)
                return self._cards.build_reserved(card, root, reason)
        for member in members:
            obstacle = self._find_member_obstacle(member)
            if obstacle is not None:
                reason = _describe_member(card, member, obstacle)
                return self._cards.build_withheld(card, reason)
        device = self._cards.build_device(card, self._cards.build_whole(card))
        addresses = ', '.join(member.address for member in members[1:])
        reason = f'together with {addresses}' if addresses else 'a group of its own'
        return self._cards.build_result(card, reason, device)

    def _find_member_fault(self, member: PciFunction) -> str | None:
        if not member.is_present:
            return 'it is missing'
        if member.is_lost:
            return LOST
        is_card = self._cards.recognizes(member)
        return self._cards.find_fault(member) if is_card else None

    def _find_member_obstacle(self, member: PciFunction) -> str | None:
        if not self._cards.recognizes(member):
            return self._find_companion_obstacle(member)
        if member.is_boot_vga:
            return BOOT_VGA
        obstacle = self._cards.find_whole_obstacle(member)
        return obstacle or self._cards.find_obstacle(member)

    def _find_companion_obstacle(self, member: PciFunction) -> str | None:
        """Return why a function beside a card cannot be in its group, or None.

        It needs no reset of its own: vfio-pci resets the whole slot after the last
        function is closed (kernel: vfio_pci_core.c, vfio_pci_dev_set_try_reset).
        """
        group = self._cards.groups.find(member.address)
        beside = [item for item in member.siblings if item.address in group]
        has_card = any(map(self._cards.recognizes, beside))
        if not has_card or not self._cards.is_own_vendor(member):
            return 'it is neither a card of this driver nor beside such a card'
        user = disk_use.find_storage_user(member)
        if user is not None:
            return f'in use by the host: {user}'
        return self._cards.find_group_obstacle(member)


def _describe_member(card: PciFunction, member: PciFunction, reason: str) -> str:
    return reason if member == card else f'{member.address}: {reason}'
