# SPDX-License-Identifier: Apache-2.0
"""Detection of devices that Nova also manages, by the providers of Nova in Placement.

Nova's PCI tracker names the provider of a device ``<node>_<address>``, in upper-case
hex digits. Virtual functions are under the address of their physical function. The
libvirt driver of Nova names the provider of a vGPU card ``<node>_pci_<address>`` with
underscores. See ``nova/compute/pci_placement_translator.py`` and
``nova/virt/libvirt``.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.providers.providers import ActualProvider, TreeNode
from cyborg_lite.model.traits import OWNER_NOVA

_PCI: Final = re.compile(
    r'_(?:pci_)?([0-9a-f]{4})[:_]([0-9a-f]{2})[:_]([0-9a-f]{2})[._]([0-7])',
    re.IGNORECASE,
)
_NOVA_TRAITS: Final = frozenset({OWNER_NOVA, 'COMPUTE_MANAGED_PCI_DEVICE'})
_NOVA_CLASS_PREFIX: Final = 'CUSTOM_PCI_'


def parse_pci_address(name: str, root_name: str) -> str | None:
    """Return the PCI address in the name of a provider, or None.

    :param root_name: name of the root provider of its tree
    """
    match = _PCI.fullmatch(name[len(root_name) :])
    if match is None or not name.startswith(root_name):
        return None
    domain, bus, slot, function = match.groups()
    return f'{domain}:{bus}:{slot}.{function}'.lower()


def map_foreign_addresses(
    root_name: str, foreign: Iterable[TreeNode]
) -> Mapping[str, TreeNode]:
    """Return foreign providers by the PCI address in their names."""
    pairs = ((parse_pci_address(node.name, root_name), node) for node in foreign)
    return {address: node for address, node in pairs if address is not None}


def find_foreign_provider(
    addresses: Collection[str], foreign: Mapping[str, TreeNode]
) -> TreeNode | None:
    """Return the first foreign provider for a function of a device, or None.

    :param addresses: of the functions of the device
    :param foreign: see ``map_foreign_addresses``
    """
    matches = (foreign[address] for address in sorted(addresses) if address in foreign)
    return next(matches, None)


def describe_conflict(holder: ActualProvider, driver: str) -> str:
    """Return a sentence that names both services that manage the device.

    :param holder: the foreign provider
    """
    has_trait = holder.traits & _NOVA_TRAITS
    has_class = any(name.startswith(_NOVA_CLASS_PREFIX) for name in holder.inventories)
    service = 'Nova' if has_trait or has_class else 'another service'
    return (
        f'Managed twice: by driver {driver} of this service, and by {service}, '
        f'provider {holder.node.name} ({holder.node.uuid}) in Placement.'
    )[:REASON_MAX_LENGTH]
