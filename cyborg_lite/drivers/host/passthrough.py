# SPDX-License-Identifier: Apache-2.0
"""Rules of the IOMMU for giving a PCI function to a guest."""

from collections.abc import Callable, Collection
from typing import Final

from cyborg_lite.drivers.host.sysfs import PciFunction

# Driver of bridges. It may stay bound to the other functions of a group that a guest
# gets: it starts no DMA, and neither do pci-stub and the variants of vfio (kernel:
# driver-api/vfio.rst).
_BRIDGE_DRIVER: Final = 'pcieport'

IsCard = Callable[[PciFunction], bool]


class IommuGroups:
    """Chooses the function of each IOMMU group that one driver offers.

    VFIO gives a group to one guest or to none. The choice for a group stays the same
    while the chosen function can be passed through. Otherwise a function in use could
    be exchanged for its neighbor.
    """

    def __init__(self) -> None:
        self.chosen: set[str] = set()  # addresses

    def find_obstacle(
        self, function: PciFunction, is_card: IsCard, together: Collection[str] = ()
    ) -> str | None:
        """Return why the IOMMU group prevents passthrough, or None if it does not.

        :param is_card: returns True for the functions that the driver offers, too
        :param together: addresses of functions that the same guest gets
        """
        group = function.iommu_group
        if group is None:
            return 'no IOMMU group: it cannot be passed through'
        members = [
            PciFunction(function.host, address)
            for address in sorted(
                {*function.group_members} - {function.address, *together}
            )
        ]
        for member in members:
            if not _is_harmless(member):
                bound = f'{member.address} bound to {member.driver}'
                return f'IOMMU group {group} also contains {bound}'
        # A physical function with virtual functions is not offered itself.
        cards = [item for item in members if not item.virtfns and is_card(item)]
        chosen = self._choose(function, [card.address for card in cards])
        if chosen != function.address:
            return f'IOMMU group {group} goes to one guest with {chosen}'
        return None

    def _choose(self, function: PciFunction, neighbors: list[str]) -> str:
        """Return the address of the card that is offered.

        :param neighbors: addresses of the other cards of the group, in order
        """
        chosen = function.address
        # The driver of this function prevents the passthrough of all other cards.
        if _is_harmless(function):
            candidates = sorted([function.address, *neighbors])
            chosen = next(filter(self.chosen.__contains__, candidates), candidates[0])
        if chosen == function.address:
            self.chosen.difference_update(neighbors)
            self.chosen.add(function.address)
        return chosen


def _is_harmless(function: PciFunction) -> bool:
    return function.driver == _BRIDGE_DRIVER or not function.has_host_driver
