# SPDX-License-Identifier: Apache-2.0
"""Whether a guest can be given a PCI function, and what stands in the way."""

from collections.abc import Callable
from typing import Final

from cyborg_lite.drivers.sysfs import PciFunction

# What may stay bound to another function of a group that a guest gets: these start no
# DMA of their own. The variants of vfio, which all have it in their names, neither.
_GUEST_DRIVERS: Final = frozenset({None, 'pcieport', 'pci-stub'})

Claims = Callable[[PciFunction], bool]


def group_obstacle(function: PciFunction, claims: Claims) -> str | None:
    """Why the IOMMU keeps a function from a guest; None: it does not.

    ``claims`` tells which other functions a driver would give away as well.
    """
    group = function.iommu_group
    if group is None:
        return 'no IOMMU group: it cannot be passed through'
    others = set(function.group_members) - {function.address}
    for other in (PciFunction(function.host, address) for address in sorted(others)):
        if other.driver not in _GUEST_DRIVERS and not other.guest_driver:
            held = f'{other.address} bound to {other.driver}'
            return f'IOMMU group {group} also holds {held}'
        if claims(other) and other.address < function.address:
            # Two guests cannot share a group; its first card stands for all.
            return f'IOMMU group {group} goes to one guest with {other.address}'
    return None
