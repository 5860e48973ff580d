# SPDX-License-Identifier: Apache-2.0
"""Who else may manage a device of ours, by what Nova leaves in Placement.

Nova's PCI tracker names the provider of a device ``<node>_<address>``, in capital hex
digits, with the address of the physical function for its virtual ones; its libvirt
driver names that of a card that it cuts into vGPUs ``<node>_pci_<address>`` with
underscores (``nova/compute/pci_placement_translator.py``, ``nova/virt/libvirt``).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from cyborg_lite.model.providers import OWNER_NOVA, ActualProvider, TreeNode

_PCI: Final = re.compile(
    r'_(?:pci_)?([0-9a-f]{4})[:_]([0-9a-f]{2})[:_]([0-9a-f]{2})[._]([0-7])',
    re.IGNORECASE,
)
_MARKS_OF_NOVA: Final = frozenset({OWNER_NOVA, 'COMPUTE_MANAGED_PCI_DEVICE'})
_CLASSES_OF_NOVA: Final = 'CUSTOM_PCI_'
_LONGEST_REASON: Final = 255


def address_in(name: str, root_name: str) -> str | None:
    """The PCI address that a provider under ``root_name`` is named for, if it is."""
    found = _PCI.fullmatch(name[len(root_name) :])
    if found is None or not name.startswith(root_name):
        return None
    domain, bus, slot, function = found.groups()
    return f'{domain}:{bus}:{slot}.{function}'.lower()


def claimed_addresses(
    root_name: str, strangers: Iterable[TreeNode]
) -> Mapping[str, TreeNode]:
    """The PCI functions that providers of others are named for."""
    named = ((address_in(node.name, root_name), node) for node in strangers)
    return {address: node for address, node in named if address is not None}


def claimant(
    addresses: Collection[str], claims: Mapping[str, TreeNode]
) -> TreeNode | None:
    """The provider of another service for one of a device's functions."""
    return next((claims[one] for one in sorted(addresses) if one in claims), None)


def conflict(holder: ActualProvider, driver: str) -> str:
    """For people: both who offer the device."""
    marked = holder.traits & _MARKS_OF_NOVA
    classes = any(name.startswith(_CLASSES_OF_NOVA) for name in holder.inventories)
    other = 'Nova' if marked or classes else 'another service'
    return (
        f'Managed twice: by driver {driver} of this service, and by {other}, provider '
        f'{holder.node.name} ({holder.node.uuid}) in Placement.'
    )[:_LONGEST_REASON]
